#!/usr/bin/env node
/* How soon a playground page shows its first picture, and a slider's move.

   usage: bench/page.mjs [PAGE.html] [--xcpnet PROGRAM] [--pages N] [--rounds N] [--whole] [--wait SECONDS]

   Opens the page (without PAGE the program's own: four flows, 20 s) N times, each time in a headless Chromium of its own, moves all sliders some positions
   to and fro, each page beginning with another, and prints the times; with --whole over all their positions, whatever work that makes. A time ends when the
   frame that shows all of it has been made. Before each page it waits, so long at most, for others to leave the processors alone. Ends with status 1 if a
   first picture takes over 1 s or a move over 150 ms (not with --whole). */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    xcpnet: { type: 'string', default: 'target/release/xcpnet' },
    pages: { type: 'string', default: '12' },
    rounds: { type: 'string', default: '4' },
    whole: { type: 'boolean', default: false },
    wait: { type: 'string', default: '0' },
  },
});
const FIRST_PICTURE = 1000;
const MOVE = 150;
// How far from where it begins each slider is moved, round by round; it ends where it began.
const MOVES = { rate: [-2, 2, 1, 0], delay: [-3, -1, 1, 0], flows: [-1, 1, 3, 0], loss: [3, 6, 1, 0], buffer: [-2, 2, 4, 0], duration: [-1, -2, 1, 0] };

/** A Chromium with one page, over the DevTools protocol on the descriptors 3 and 4. */
class Browser {
  constructor(profile) {
    this.child = spawn('chromium', [
      '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', '--remote-debugging-pipe', `--user-data-dir=${profile}`, 'about:blank',
    ], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
    this.next = 1;
    this.waiting = new Map();
    this.loaded = () => {};
    let rest = '';
    this.child.stdio[4].setEncoding('utf8').on('data', (part) => {
      const messages = (rest + part).split('\0');
      rest = messages.pop();
      for (const message of messages.map((text) => JSON.parse(text))) {
        if (message.method === 'Page.loadEventFired') this.loaded();
        const done = this.waiting.get(message.id);
        this.waiting.delete(message.id);
        if (done) done(message);
      }
    });
  }

  async call(method, params = {}) {
    const id = this.next++;
    this.child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId: this.session })}\0`);
    const { result, error } = await new Promise((done) => { this.waiting.set(id, done); });
    if (error || result.exceptionDetails) throw new Error(`${method}: ${JSON.stringify(error || result.exceptionDetails)}`);
    return result;
  }

  async eval(expression) {
    return (await this.call('Runtime.evaluate', { expression, returnByValue: true, awaitPromise: true })).result.value;
  }

  async open(file) {
    const { targetId } = await this.call('Target.createTarget', { url: 'about:blank' });
    this.session = (await this.call('Target.attachToTarget', { targetId, flatten: true })).sessionId;
    await this.call('Page.enable');
    await this.call('Emulation.setDeviceMetricsOverride', { width: 1400, height: 900, deviceScaleFactor: 1, mobile: false });
    // What a browser does when it starts is not the page's.
    await sleep(1500);
    const loaded = new Promise((done) => { this.loaded = done; });
    await this.call('Page.navigate', { url: `file://${resolve(file)}` });
    await loaded;
    return this.eval(`playground.settled(0).then(() => ${wait('playground.state.firstPicture')})`);
  }

  async end() {
    const gone = new Promise((done) => { this.child.on('exit', done); });
    this.call('Browser.close').catch(() => {});
    await gone;
  }
}
const wait = (what) => `new Promise((done) => { const look = () => (${what} ? done(${what}) : setTimeout(look, 5)); look(); })`;
/** Moves a slider and says in how many milliseconds all of it was there; 0 if it is there already. */
const move = (name, to) => `(() => {
  const slider = document.getElementById('slider-${name}');
  const to = Math.max(0, Math.min(Number(slider.max), ${to}));
  if (to === Number(slider.value)) return 0;
  playground.state.redrawn = 0;
  slider.value = to;
  slider.dispatchEvent(new Event('input'));
  return ${wait('playground.state.redrawn')};
})()`;

/** The share of all processors that was in use for a while. */
const inUse = async (ms) => {
  const read = () => readFileSync('/proc/stat', 'utf8').split('\n')[0].split(/\s+/).slice(1, 9).map(Number);
  const before = read();
  await sleep(ms);
  const spent = read().map((ticks, i) => ticks - before[i]);
  return 1 - (spent[3] + spent[4]) / spent.reduce((a, b) => a + b);
};
const sorted = (list) => [...list].sort((a, b) => a - b);
const row = (name, list) => {
  const s = sorted(list);
  const at = (share) => s[Math.floor(share * (s.length - 1))].toFixed(0).padStart(7);
  console.log(`${name.padEnd(24)}${String(s.length).padStart(6)}${at(0)}${at(0.5)}${at(0.95)}${at(1)}`);
};

const home = mkdtempSync(join(tmpdir(), 'page-'));
let [file] = positionals;
if (!file) {
  file = join(home, 'page.html');
  execFileSync(options.xcpnet, ['playground', '--out', file]);
}
const [firstPicture, firstMove, laterMoves, others, by] = [[], [], [], [], {}];
for (let n = 0; n < Number(options.pages); n++) {
  const patience = performance.now() + 1000 * Number(options.wait);
  let used = await inUse(1000);
  while (used > 0.1 && performance.now() < patience) used = await inUse(1000);
  others.push(used);
  const browser = new Browser(join(home, `profile-${n}`));
  firstPicture.push(await browser.open(file));
  const names = Object.keys(MOVES).map((_, i, all) => all[(i + n) % all.length]);
  const start = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await browser.eval(`Number(document.getElementById('slider-${name}').value)`)])));
  let first = true;
  const time = async (name, to) => {
    const took = await browser.eval(move(name, to));
    if (!took) return;
    if (!options.whole) (first ? firstMove : laterMoves).push(took);
    first = false;
    (by[name] = by[name] || []).push(took);
    if (options.whole) row(`${name} ${await browser.eval(`document.getElementById('slider-${name}').getAttribute('aria-valuetext')`)}`, [took]);
    // Nobody moves the next one in the same frame.
    await sleep(100);
  };
  if (options.whole) {
    for (const name of names) {
      const last = await browser.eval(`Number(document.getElementById('slider-${name}').max)`);
      for (let to = 0; to <= last; to++) await time(name, to);
      await browser.eval(move(name, start[name]));
    }
  } else {
    for (let round = 0; round < Number(options.rounds); round++) for (const name of names) await time(name, start[name] + MOVES[name][round % 4]);
  }
  await browser.end();
}
rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });

console.log(`${'milliseconds'.padEnd(24)}${['n', 'least', 'median', '95 %', 'most'].map((name, i) => name.padStart(i ? 7 : 6)).join('')}`);
row('first picture', firstPicture);
if (!options.whole) {
  row('first move of a page', firstMove);
  row('later moves', laterMoves);
}
for (const [name, list] of Object.entries(by)) row(`  ${name}`, list);
const percent = (share) => `${(100 * share).toFixed(0)} %`;
console.log(`Others used ${percent(sorted(others)[others.length >> 1])} of the processors before a page was opened (median; at most ${percent(Math.max(...others))}).`);
if (!options.whole) {
  for (const [name, list, most] of [['first picture', firstPicture, FIRST_PICTURE], ['each move', [...firstMove, ...laterMoves], MOVE]]) {
    const passes = Math.max(...list) <= most;
    console.log(`${name}: at most ${most} ms: ${passes ? 'pass' : 'FAIL'}`);
    if (!passes) process.exitCode = 1;
  }
}
