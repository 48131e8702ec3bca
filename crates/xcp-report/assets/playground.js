/* A playground page: the scenario's text, the controls that change it, and the runs of what it says. The text is the only truth: controls rewrite it,
   the reader reads it, each variant runs in a worker of its own. All that comes from a scenario or an address goes into the page as text, never as
   markup. The workers are those of playground-engine.js; the pictures of what came of a run, playground-charts.js and playground-packets.js draw. */
(() => {
  'use strict';

  const {
    $, make, root, page, chosen, source, fileName, SHOWN, state, columns, variants, shownVariants, first, columnName, mainLink, takeColours,
  } = xcpPage;
  const { Engine, askReader } = xcpEngine;
  const { keep, fromAddress } = xcpAddress;
  const { drawPackets, buildKey } = xcpPackets;
  const { ROWS, buildRows, drawRows, redrawPlots, onTime } = xcpCharts;
  const { number, percent, index, unitFor, withUnit } = xcpNumbers;
  // Packets times links that run unasked: some seconds on a phone.
  const MOST_HOPS = 2e7;

  // ---- paths ----------------------------------------------------------------------------------------------------------------------------

  const quotedPart = (name) => (/^[\w-]+$/.test(name) ? name : `"${name}"`);
  const toml = (text) => `"${text.replace(/[\\"]/g, '\\$&')}"`;
  const linkPath = (key) => `link.${quotedPart(state.link)}.${key}`;
  const tcpGroups = (variant) => variant.groups.filter((group) => group.congestion);
  const groupPath = (key) => (first().groups.length > 1 ? `flow.${quotedPart(state.group)}.${key}` : `flow.${key}`);
  const paths = () => ['flow.congestion', ...(state.link ? [linkPath('queue.limit'), linkPath('loss')] : [])];
  // A loss that is written may have a direction, a place and a time: those stay.
  const lossPath = () => linkPath(variants().some((v) => v.written[linkPath('loss')]) ? 'loss.probability' : 'loss');

  const say = (text, bad = false) => { $('status').textContent = text; $('status').classList.toggle('bad', bad); };

  // ---- reading --------------------------------------------------------------------------------------------------------------------------

  const read = async (text) => {
    const answer = await askReader({ do: 'read', name: state.name, text, written: paths() });
    return answer;
  };

  let generation = 0;

  // Takes a text over, if it is right, and runs it; else tells what is wrong. `typed`: it is what the editor shows already; `known`: it has been read.
  const take = async (text, { typed = false, remember = true, told = true, known = null } = {}) => {
    const mine = ++generation;
    let answer = known || await read(text);
    if (mine !== generation) return false;
    problems(answer.ok ? [] : answer.problems || [], answer.ok ? '' : answer.text);
    if (!answer.ok) {
      if (told) say('The scenario is not correct yet: see the errors below its text. The pictures show the last correct one.', true);
      return false;
    }
    if (remember && text !== state.text) state.past.push(state.text);
    // What is being typed and is not correct yet is not lost either: Undo puts it back.
    if (remember && !typed && $('text').value !== state.text) state.past.push($('text').value);
    if (state.past.length > 200) state.past.shift();
    state.text = text;
    state.read = answer;
    state.anyway = false;
    if (!typed) $('text').value = text;
    const links = answer.variants[0].links.map((link) => link.name);
    const main = answer.variants[0].main;
    const before = state.link;
    const groups = answer.variants[0].groups.map((group) => group.name);
    state.usual = { link: links[main === null ? 0 : Math.min(main >> 1, links.length - 1)] || null, group: groups[0] || null };
    if (!links.includes(state.link)) state.link = state.usual.link;
    if (!groups.includes(state.group)) state.group = state.usual.group;
    if (state.link !== before) {
      answer = await read(text);
      if (mine !== generation) return false;
      state.read = answer;
    }
    $('undo').disabled = !state.past.length;
    build();
    run();
    keep();
    return true;
  };

  // Changes settings in the text; `fallback` where the first way is refused by the reader. What the reader refuses in the end does not become the text:
  // the controls go back to what that says, and the reason is told at the top, as whoever moves a slider does not see what is below the text.
  const change = async (changes, fallback) => {
    const base = state.text;
    const set = async (list) => {
      const answer = await askReader({ do: 'set', text: base, changes: list, name: state.name, written: paths() });
      if (!answer.ok) { say(answer.text, true); return false; }
      if (!answer.read.ok) {
        if ((!fallback || list === fallback) && state.text === base) {
          const [problem] = answer.read.problems || [];
          say(`That is not possible here: ${problem ? problem.what : answer.read.text}.`, true);
          build();
        }
        return false;
      }
      return take(answer.text, { known: answer.read });
    };
    if (await set(changes)) return true;
    return fallback ? set(fallback) : false;
  };

  const problems = (list, text) => {
    const items = list.slice(0, 20).map((problem) => {
      const where = problem.line ? `line ${problem.line}, column ${problem.column}: ` : '';
      const button = make('button', { type: 'button', textContent: `${where}${problem.what}` });
      button.addEventListener('click', () => select(problem));
      const item = make('li', {}, button);
      if (problem.line) {
        const from = Math.max(0, problem.column - 60);
        const shown = problem.snippet.slice(from, from + 120);
        item.append(make('pre', {}, make('code', {}, `${shown}\n${' '.repeat(Math.max(0, problem.column - 1 - from))}`, make('span', { className: 'caret', textContent: '^'.repeat(Math.min(Math.max(problem.width, 1), 120)) }))));
      }
      if (problem.help) item.append(make('span', { textContent: `help: ${problem.help}` }));
      return item;
    });
    if (!items.length && text) items.push(make('li', { textContent: text }));
    if (list.length > 20) items.push(make('li', { textContent: `and ${list.length - 20} more` }));
    $('problems').replaceChildren(...items);
    $('text').setAttribute('aria-invalid', String(items.length > 0));
  };

  // Puts the editor's caret where a problem is. Columns are characters, an editor's positions UTF-16.
  const select = ({ line, column, width }) => {
    const box = $('text');
    box.focus();
    if (!line) return;
    const lines = box.value.split('\n');
    const before = lines.slice(0, line - 1).reduce((sum, l) => sum + l.length + 1, 0);
    const letters = [...(lines[line - 1] || '')];
    const at = before + letters.slice(0, column - 1).join('').length;
    box.setSelectionRange(at, at + letters.slice(column - 1, column - 1 + width).join('').length);
    box.scrollTop = Math.max(0, (line - 6) * 19.5);
  };

  // ---- running --------------------------------------------------------------------------------------------------------------------------

  const run = () => {
    const shown = shownVariants();
    let told = false;
    shown.forEach((variant, i) => {
      const column = columns[i];
      column.variant = variant;
      column.wanted = { do: 'run', name: state.name, text: state.text, variant, most_hops: state.anyway ? 1e12 : MOST_HOPS, packets: true };
      column.card.classList.add('stale');
      if (column.engine.waiting) {
        // Nearly done is worth waiting for: a slider being moved shows what it passes.
        if (performance.now() - column.engine.waiting.since > 250) column.engine.stop();
        return;
      }
      pump(column);
      told = true;
    });
    if (told && !state.everRan) say('Running …');
  };

  const pump = async (column) => {
    while (column.wanted && !column.engine.waiting) {
      const request = column.wanted;
      column.wanted = null;
      const began = performance.now();
      let drawn = 0;
      const answer = await column.engine.ask(request, (partial) => {
        if (column.wanted || columns.indexOf(column) < 0) return;
        column.partial = true;
        column.answer = { ...partial, packets: null };
        column.note.textContent = `so far ${number(partial.now)} s`;
        if (performance.now() - drawn > 90) { draw(); drawn = performance.now(); }
      });
      if (columns.indexOf(column) < 0) return;
      if (answer) finish(column, answer, performance.now() - began);
    }
  };

  // Draws what has changed. What came of one variant waits a moment for the others, which are mostly done then: drawing takes a processor that they need.
  let drawing = 0;
  const draw = () => {
    clearTimeout(drawing);
    drawing = 0;
    setTime(state.time);
    for (const c of columns) if (!c.partial) drawPackets(c);
    drawRows();
    if (!state.firstPicture && columns.some((c) => c.answer)) whenSeen(() => { state.firstPicture = state.firstPicture || performance.now(); });
  };
  const drawSoon = () => { drawing = drawing || setTimeout(draw, 40); };
  // Calls it when the browser has made a picture of what is on the page now.
  const whenSeen = (then) => requestAnimationFrame(() => setTimeout(then));

  const finish = (column, answer, took) => {
    column.partial = false;
    column.note.textContent = '';
    if (!answer.ok) {
      column.warn.textContent = answer.text;
      column.summary = null;
      if (answer.problems) problems(answer.problems, answer.text);
      $('anyway').hidden = !answer.hops;
      say(`${columnName(column)}: not run. ${answer.hops ? 'It is more work than this page does without asking.' : ''}`, true);
      drawSoon();
      return;
    }
    column.answer = answer;
    column.took = took;
    column.summary = JSON.parse(answer.json);
    column.warn.textContent = notes(column.summary);
    column.ranText = state.text;
    column.index = null;
    column.card.classList.toggle('stale', !!column.wanted);
    figures(column);
    if (columns.every((c) => c.summary && !c.wanted && !c.engine.waiting)) settled(); else drawSoon();
  };

  const settled = () => {
    draw();
    state.everRan = true;
    state.runs = (state.runs || 0) + 1;
    if (state.changed) {
      const { changed } = state;
      state.changed = 0;
      whenSeen(() => { state.redrawn = performance.now() - changed; });
    }
    $('anyway').hidden = true;
    say(columns.map((c) => `${columnName(c)}: ${told(c)}`).join('; '));
    keep();
  };

  // What one should know before believing the numbers, as `xcpnet run` tells it.
  const notes = ({ notes: list = [] }) => [...list.slice(0, 3), ...(list.length > 3 ? [`and ${list.length - 3} more`] : [])].join('; ');
  const rtt = (summary) => { const list = summary.flows.map((f) => f.rtt_mean).filter((r) => r > 0); return list.length ? list.reduce((a, b) => a + b, 0) / list.length : NaN; };
  const told = (column) => {
    const link = column.summary.links[mainLink()];
    return link ? `${percent(link.utilisation)} used, mean queue ${number(link.queue_mean)} packets, ${link.drops} drops` : 'done';
  };

  // ---- controls -------------------------------------------------------------------------------------------------------------------------

  const TENTHS = [1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8];
  const decades = (from, to) => { const out = []; for (let e = from; e < to; e++) for (const t of TENTHS) out.push(+(t * 10 ** e).toPrecision(3)); out.push(10 ** to); return out; };
  const plainRate = (v) => (v >= 1e9 ? `${+(v / 1e9).toPrecision(9)}gbit` : v >= 1e6 ? `${+(v / 1e6).toPrecision(9)}mbit` : v >= 1e3 ? `${+(v / 1e3).toPrecision(9)}kbit` : `${v}bit`);
  const plainTime = (v) => (v >= 1 ? `${+v.toPrecision(9)}s` : v >= 1e-3 ? `${+(v * 1e3).toPrecision(9)}ms` : `${+(v * 1e6).toPrecision(9)}us`);
  // Each: where it is, the values it may have (and what they have to be above), what it is now, how one is written and shown.
  const SLIDERS = [
    { key: 'rate', label: 'Rate', of: 'link', values: decades(4, 9), now: (link) => link.rate, path: () => linkPath('rate'), write: (v) => toml(plainRate(v)), show: (v) => withUnit('bps', v) },
    { key: 'delay', label: 'Delay, one way', of: 'link', values: decades(-4, 0), now: (link) => link.delay, path: () => linkPath('delay'), write: (v) => toml(plainTime(v)), show: (v) => (v ? withUnit('seconds', v) : '0') },
    { key: 'flows', label: 'Flows', of: 'group', values: [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 100], now: (group) => group.count, path: () => groupPath('count'), write: String, show: String },
    { key: 'loss', label: 'Loss on the link', of: 'link', values: [0, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1], now: (link) => link.loss, path: lossPath, write: (v) => String(v), show: (v) => `${number(100 * v)} %` },
    { key: 'buffer', label: 'Buffer', of: 'link', values: [0.05, 0.1, 0.2, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 10], now: (link, variant) => inBdp(link, variant), path: () => linkPath('queue.limit'), write: (v) => toml(`${v}bdp`), show: (v) => (v === null ? 'as written' : `${number(v)} × rate × RTT`) },
    { key: 'duration', label: 'Duration', of: 'file', values: [2, 5, 10, 15, 20, 30, 45, 60, 100, 200], above: () => Math.max(...variants().map((v) => v.measure[0])), now: (_, variant) => variant.duration, path: () => 'duration', write: (v) => toml(plainTime(v)), show: (v) => withUnit('seconds', v) },
  ];
  // A buffer that is written in bandwidth-delay products as such; any other in packets, which has no place among those.
  const inBdp = (_, variant) => { const m = /^"\s*([\d.]+)\s*bdp\s*"$/.exec(variant.written[linkPath('queue.limit')] || ''); return m ? +m[1] : null; };

  const sliders = {};
  for (const spec of SLIDERS) {
    const id = `slider-${spec.key}`;
    const out = make('output', { htmlFor: id });
    const input = make('input', { type: 'range', id, min: 0, step: 1 });
    const label = make('label', { htmlFor: id }, make('span', { textContent: spec.label }), out);
    const box = make('div', { className: 'slider' }, label, input);
    $('sliders').append(box);
    const slider = { spec, input, out, box, steps: [], busy: false, next: null };
    const show = () => { const text = spec.show(slider.steps[input.value]); out.textContent = text; input.setAttribute('aria-valuetext', text); };
    input.addEventListener('input', async () => {
      show();
      state.changed = performance.now();
      slider.next = slider.steps[input.value];
      if (slider.busy) return;
      slider.busy = true;
      let taken = true;
      while (slider.next !== null) {
        const value = slider.next;
        slider.next = null;
        if (value !== null) taken = await change([{ path: spec.path(), value: spec.write(value) }]);
      }
      slider.busy = false;
      if (!taken) build();
    });
    slider.place = (link, group, variant) => {
      const thing = spec.of === 'link' ? link : spec.of === 'group' ? group : variant;
      box.hidden = !thing;
      if (!thing || slider.busy) return;
      const now = spec.now(thing, variant);
      // The value of the text has its place among the usual ones; a buffer in packets stands before them.
      const values = spec.above ? spec.values.filter((v) => v > spec.above()) : spec.values;
      slider.steps = now === null ? [null, ...values] : [...new Set([...values, now])].sort((a, b) => a - b);
      input.max = slider.steps.length - 1;
      input.value = slider.steps.indexOf(now);
      show();
      if (now === null) out.textContent = `${Math.floor(link.limit)} packets`;
    };
    sliders[spec.key] = slider;
  }

  const options = (select, list, now) => {
    const there = [...select.options].map((o) => o.value).join('\n');
    if (there !== list.map(([value]) => value).join('\n')) select.replaceChildren(...list.map(([value, text]) => make('option', { value, textContent: text })));
    select.value = now;
  };

  // Words of a scenario's file as reports set them (html/prose.rs): code, bold, and lists.
  const spans = (text) => text.split(/(\*\*.+?\*\*|`[^`]+`)/s).map((part, i) => (
    i % 2 === 0 ? part
      : part[0] === '`' ? make('code', { textContent: part.slice(1, -1) })
        : make('strong', {}, ...spans(part.slice(2, -2)))));
  const prose = (paragraph) => {
    const [lead, ...items] = paragraph.split(/(?:^|\n)- /);
    const list = items.map((item) => make('li', {}, ...spans(item)));
    return [
      ...(lead ? [make('p', {}, ...spans(lead))] : []),
      ...(list.length ? [make('ul', {}, ...list)] : []),
    ];
  };

  const build = () => {
    const read = state.read;
    document.title = read.title;
    $('title').textContent = read.title;
    $('lead').replaceChildren(...(read.description || '').trim().split(/\n\s*\n/).slice(0, 4).flatMap(prose));
    const variant = first();
    const links = variant.links.map((l) => [l.name, l.name]);
    options($('link'), links, state.link);
    $('pick-link').hidden = links.length < 2;
    const groups = variant.groups.map((g) => [g.name, g.name]);
    options($('group'), groups, state.group);
    $('pick-group').hidden = groups.length < 2;
    const link = variant.links.find((l) => l.name === state.link);
    const group = variant.groups.find((g) => g.name === state.group);
    for (const slider of Object.values(sliders)) slider.place(link, group, variant);

    $('pick').hidden = variants().length <= SHOWN;
    if (!$('pick').hidden) {
      const legend = $('pick').querySelector('legend');
      const shown = shownVariants();
      $('pick').replaceChildren(legend, ...variants().map((v, i) => {
        const box = make('input', { type: 'checkbox', checked: shown.includes(i), disabled: !shown.includes(i) && shown.length >= SHOWN });
        box.addEventListener('change', () => { state.shown = box.checked ? [...shown, i].sort((a, b) => a - b) : shown.filter((k) => k !== i); build(); run(); keep(); });
        return make('label', {}, box, v.name);
      }));
    }
    const wanted = shownVariants();
    while (columns.length > wanted.length) drop(columns.pop());
    while (columns.length < wanted.length) columns.push(column(columns.length));
    for (const id of ['cards', 'views']) $(id).style.setProperty('--cols', wanted.length);
    columns.forEach((c, i) => { c.variant = wanted[i]; place(c); });
    const isCubic = (v) => tcpGroups(v).every((g) => g.congestion === 'cubic') && v.links.every((l) => l.name !== state.link || l.queue === 'drop-tail');
    $('compare-bar').hidden = variants().length >= SHOWN || !tcpGroups(variant).length || !state.link || variants().some(isCubic);
    options($('of'), wanted.map((i) => [String(i), variants()[i].name || 'the run']), wanted.map(String).includes($('of').value) ? $('of').value : String(wanted[0]));
    $('only-print').textContent = state.text;
    if (buildRows()) drawSoon();
  };

  // ---- a variant's card -----------------------------------------------------------------------------------------------------------------

  const column = (i) => {
    const c = { engine: new Engine(), wanted: null, answer: null, summary: null, plots: {} };
    c.name = make('h3');
    c.sub = make('p', { className: 'sub' });
    c.note = make('p', { className: 'sub' });
    c.warn = make('p', { className: 'warn' });
    c.numbers = make('dl');
    c.each = make('p', { className: 'each' });
    c.kind = make('select', { id: `kind-${i}` });
    c.law = make('select', { id: `law-${i}` });
    c.congestion = make('select', { id: `congestion-${i}` });
    const label = (select, text) => make('label', { htmlFor: select.id, textContent: text });
    // Heard by itself a choice does not tell which variant's it is.
    c.name.id = `variant-${i}`;
    for (const select of [c.congestion, c.kind, c.law]) select.setAttribute('aria-describedby', c.name.id);
    c.choices = make('div', { className: 'choices' }, label(c.congestion, 'Congestion control'), c.congestion, label(c.kind, 'Queue'), c.kind, label(c.law, 'Router’s law'), c.law);
    c.card = make('article', { className: 'card' }, c.name, c.sub, c.numbers, c.each, c.note, c.choices, c.warn);
    $('cards').append(c.card);
    c.canvas = make('canvas', { className: 'packets' });
    c.canvas.setAttribute('role', 'img');
    c.caption = make('b');
    c.view = make('figure', {}, make('figcaption', {}, c.caption), make('div', { className: 'packets-box' }, c.canvas));
    $('views').append(c.view);
    c.congestion.addEventListener('change', () => { state.changed = performance.now(); change([own(c, congestionPath(c), toml(c.congestion.value))]); });
    c.kind.addEventListener('change', () => {
      state.changed = performance.now();
      const kind = toml(c.kind.value);
      const limit = variants()[c.variant].written[linkPath('queue.limit')];
      change([own(c, linkPath('queue.kind'), kind)], [own(c, linkPath('queue'), `{ kind = ${kind}${limit ? `, limit = ${limit}` : ''} }`)]);
    });
    c.law.addEventListener('change', () => {
      state.changed = performance.now();
      const limit = variants()[c.variant].written[linkPath('queue.limit')];
      change([own(c, linkPath('queue.law.preset'), toml(c.law.value))], [own(c, linkPath('queue'), `{ kind = "xcp", law = ${toml(c.law.value)}${limit ? `, limit = ${limit}` : ''} }`)]);
    });
    return c;
  };
  const drop = (c) => {
    c.engine.worker.terminate();
    c.engine.waiting = null;
    c.card.remove();
    c.view.remove();
  };
  // A change for one variant; for the file where it has none.
  const own = (c, path, value) => ({ variant: variants()[c.variant].name || null, path, value });
  const congestionPath = (c) => {
    const groups = tcpGroups(variants()[c.variant]);
    return new Set(groups.map((g) => g.congestion)).size > 1 ? `flow.${quotedPart(chosenTcp(c).name)}.congestion` : 'flow.congestion';
  };
  const chosenTcp = (c) => { const groups = tcpGroups(variants()[c.variant]); return groups.find((g) => g.name === state.group) || groups[0]; };

  const place = (c) => {
    const variant = variants()[c.variant];
    const name = variant.name || 'This scenario';
    const link = variant.links.find((l) => l.name === state.link);
    const tcp = chosenTcp(c);
    c.name.textContent = name;
    c.caption.textContent = variant.name;
    c.sub.textContent = link ? `${link.name}: ${withUnit('bps', link.rate)}, ${link.queue}, ${Math.floor(link.limit)} packets at most` : '';
    for (const e of [c.congestion, c.congestion.labels[0]]) e.hidden = !tcp;
    if (tcp) {
      // The word of the text, where one is everybody's: Reno may have been given SACK's recovery, which is called sack as well.
      const word = congestionPath(c) === 'flow.congestion' && /^"([\w-]+)"$/.exec(variant.written['flow.congestion'] || '');
      options(c.congestion, [...new Set([...state.read.congestions, tcp.congestion])].map((w) => [w, w]), word ? word[1] : tcp.congestion);
    }
    for (const e of [c.kind, c.kind.labels[0]]) e.hidden = !link;
    if (link) {
      options(c.kind, state.read.queues.map((w) => [w, w]), link.queue);
      for (const e of [c.law, c.law.labels[0]]) e.hidden = link.queue !== 'xcp';
      options(c.law, state.read.laws.map((w) => [w, w]), link.law);
    }
  };

  const figures = (c) => {
    const link = c.summary.links[mainLink()];
    const figure = (name, value, unit, big) => make('div', { className: big ? 'figure big' : 'figure' }, make('dt', { textContent: name }), make('dd', {}, `${value} `, make('small', { textContent: unit })));
    const apart = (text) => [...text.split(' '), ''].slice(0, 2);
    const list = [];
    if (link) list.push(figure('Utilisation', ...apart(percent(link.utilisation)), true), figure('Mean queue', number(link.queue_mean), 'packets', true), figure('Drops', String(link.drops), '', true));
    list.push(figure('Mean RTT', ...apart(withUnit('seconds', rtt(c.summary)))), figure('Fairness (Jain)', index(c.summary.jain), ''));
    if (link && link.lost) list.push(figure('Lost', String(link.lost), 'packets'));
    c.numbers.replaceChildren(...list);
    const flows = c.summary.flows;
    const unit = unitFor('bps', Math.max(0, ...flows.slice(0, 8).map((f) => f.goodput)));
    const each = flows.slice(0, 8).map((f, i) => [make('span', { textContent: `${i ? ' · ' : ''}${f.name} ` }), number(f.goodput / unit[0])]).flat();
    c.each.replaceChildren(...each, make('span', { textContent: ` ${unit[1]}${flows.length > 8 ? `, and ${flows.length - 8} more` : ''}` }));
  };


  // ---- time -----------------------------------------------------------------------------------------------------------------------------

  const longest = () => Math.max(0.001, ...shownVariants().map((i) => variants()[i].duration));
  let timer = 0;
  const setTime = (t, fromSlider = false) => {
    state.time = Math.min(longest(), Math.max(0, t));
    if (!fromSlider) $('time').value = Math.round((1000 * state.time) / longest());
    $('time-out').textContent = `${state.time.toFixed(longest() < 2 ? 3 : 2)} s`;
    $('time').setAttribute('aria-valuetext', $('time-out').textContent);
    const thin = Math.max(1, ...columns.map((c) => (c.answer && c.answer.packets ? c.answer.packets.oneIn : 1)));
    $('packets-note').textContent = `Every packet where the simulator had it${thin > 1 ? `; one in ${thin} is drawn` : ''}. Move the time, or click into a chart.`;
  };
  const placeTime = (t, fromSlider = false) => {
    setTime(t, fromSlider);
    columns.forEach(drawPackets);
    if (!timer) redrawPlots();
  };
  const pause = () => {
    cancelAnimationFrame(timer);
    timer = 0;
    $('play').textContent = 'Play';
    $('play').setAttribute('aria-pressed', 'false');
    redrawPlots();
    keep();
  };
  const play = () => {
    if (state.time >= longest()) state.time = 0;
    $('play').textContent = 'Pause';
    $('play').setAttribute('aria-pressed', 'true');
    let last = performance.now();
    const step = (now) => {
      const t = state.time + ((now - last) / 1000) * Number($('speed').value);
      last = now;
      placeTime(t);
      if (t >= longest()) pause(); else timer = requestAnimationFrame(step);
    };
    timer = requestAnimationFrame(step);
  };
  $('play').addEventListener('click', () => (timer ? pause() : play()));
  $('time').addEventListener('input', () => { if (timer) pause(); placeTime((Number($('time').value) / 1000) * longest(), true); keep(); });
  onTime((t) => { pause(); placeTime(t); });
  $('colours').addEventListener('change', () => { $('key').hidden = $('colours').value === 'flow'; placeTime(state.time); });

  const banner = (text) => { $('banner-text').textContent = text; $('banner').hidden = !text; };

  // ---- exports --------------------------------------------------------------------------------------------------------------------------

  const FIGURES = [...ROWS.filter((row) => row.key !== 'drops'), { heading: 'Round-trip time', column: 'srtt_s', of: 'flow' }];
  $('figure').replaceChildren(...FIGURES.map((row) => make('option', { value: row.column, textContent: row.heading })));
  const stem = () => fileName.replace(/\.toml$/, '').replace(/[^\w.-]+/g, '-').replace(/^[.-]+/, '') || 'scenario';
  const svgFigure = async () => {
    const row = FIGURES.find((r) => r.column === $('figure').value);
    const answer = await askReader({ do: 'figure', name: state.name, text: state.text, quantity: row.column, link: row.of === 'link' ? mainLink() : null, most_hops: 3 * MOST_HOPS }, 60000);
    if (!answer.ok) { say(answer.text, true); return null; }
    return answer.text;
  };
  const exported = async (kind) => {
    const c = columns.find((k) => String(k.variant) === $('of').value) || columns[0];
    const run = xcpFigure.slug(variants()[c.variant].name || stem(), 'run');
    if (kind === 'toml') return [fileName.replace(/[^\w.-]+/g, '-'), new Blob([state.text], { type: 'application/toml' })];
    if (kind === 'json') return c.answer && c.answer.json ? [`${run}.json`, new Blob([`${c.answer.json}\n`], { type: 'application/json' })] : null;
    if (kind === 'links.csv' || kind === 'flows.csv') {
      if (c.engine.waiting || !c.summary) { say('Wait until the run is done.', true); return null; }
      const answer = await c.engine.ask({ do: 'csv', table: kind.slice(0, 5) });
      // What was to run meanwhile has waited for this, or has stopped it.
      pump(c);
      if (!answer || !answer.ok) { say(answer ? answer.text : 'Wait until the run is done.', true); return null; }
      return [`${run}.${kind}`, new Blob([answer.text], { type: 'text/csv' })];
    }
    const svg = await svgFigure();
    if (!svg) return null;
    const name = `${stem()}-${xcpFigure.slug($('figure').value, 'figure')}`;
    if (kind === 'svg') return [`${name}.svg`, new Blob([svg], { type: 'image/svg+xml' })];
    return [`${name}.png`, await xcpFigure.png(svg)];
  };
  for (const button of document.querySelectorAll('[data-export]')) {
    button.addEventListener('click', async () => { const made = await exported(button.dataset.export); if (made) xcpFigure.save(...made); });
  }
  $('address').addEventListener('click', async () => {
    keep();
    await new Promise((done) => { setTimeout(done, 600); });
    try { await navigator.clipboard.writeText(location.href); say('The address was copied.'); } catch { say('The address of this state is in the browser’s address bar.'); }
  });
  $('print').addEventListener('click', () => print());
  addEventListener('beforeprint', () => { root.classList.add('printing'); recolour(); });
  addEventListener('afterprint', () => { root.classList.remove('printing'); recolour(); });

  // ---- the rest of the page -------------------------------------------------------------------------------------------------------------

  const recolour = () => { takeColours(); buildKey(); drawRows(); placeTime(state.time); };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', recolour);
  let width = 0;
  new ResizeObserver(() => {
    requestAnimationFrame(() => {
      if (document.body.clientWidth === width || root.classList.contains('printing')) return;
      width = document.body.clientWidth;
      if (state.read) { drawRows(); placeTime(state.time); }
    });
  }).observe(document.body);

  $('link').addEventListener('change', () => { state.link = $('link').value; take(state.text); });
  $('group').addEventListener('change', () => { state.group = $('group').value; build(); keep(); });
  let typing = 0;
  $('text').addEventListener('input', () => { clearTimeout(typing); typing = setTimeout(() => { state.changed = performance.now(); take($('text').value, { typed: true }); }, 350); });
  $('text').addEventListener('keydown', (event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) { clearTimeout(typing); take($('text').value, { typed: true }); } });
  $('undo').addEventListener('click', () => {
    if (!state.past.length) return;
    $('text').value = state.past.pop();
    take($('text').value, { typed: true, remember: false });
  });
  const back = () => { banner(''); state.shown = null; state.link = null; state.group = null; return take(source.text); };
  $('reset').addEventListener('click', back);
  $('banner-back').addEventListener('click', back);
  $('anyway').addEventListener('click', () => { state.anyway = true; $('anyway').hidden = true; run(); });
  $('compare').addEventListener('click', async () => {
    const names = variants().map((v) => v.name);
    let name = 'CUBIC';
    for (let i = 2; names.includes(name); i++) name = `CUBIC ${i}`;
    const limit = first().written[linkPath('queue.limit')];
    const asWritten = names.length === 1 && !names[0] ? '\n[[variant]]\nname = "as written"\n' : '';
    const queue = `{ kind = "drop-tail"${limit ? `, limit = ${limit}` : ''} }`;
    await take(`${state.text.trimEnd()}\n${asWritten}\n[[variant]]\nname = ${toml(name)}\nset = { "flow.congestion" = "cubic", ${toml(linkPath('queue'))} = ${queue} }\n`);
  });
  $('file').replaceChildren(...page.sources.map(({ name }, i) => make('option', { value: i, textContent: name, selected: i === chosen })));
  $('pick-file').hidden = page.sources.length < 2;
  $('file').addEventListener('change', () => { location.hash = `f=${$('file').value}`; });
  // Another address in the same tab loads nothing by itself. What the page writes there itself is not heard here.
  addEventListener('hashchange', () => location.reload());
  $('footer').textContent = `xcpnet ${page.version}. The page runs xcpnet’s own simulator (WebAssembly, GPL-2.0-or-later as a whole) and uses no network. ${fileName}: `;
  $('footer').append(make('code', { textContent: `xcpnet run ${fileName}` }), ' gives the same numbers.');

  window.playground = {
    state, columns, take, exported,
    settled: async (before) => { while ((state.runs || 0) <= before || columns.some((c) => c.wanted || c.engine.waiting)) await new Promise((done) => { setTimeout(done, 10); }); return state.runs; },
    get summaries() { return columns.map((c) => c.summary); },
  };

  (async () => {
    try { await xcpEngine.start(); } catch (error) { say(String(error.message || error), true); return; }
    buildKey();
    const own = await fromAddress();
    $('text').value = source.text;
    if (own && !own.bad) {
      Object.assign(state, { link: own.link, group: own.group, shown: own.shown, time: own.time });
      banner('This is the state contained in the address.');
      $('text').value = own.text;
      if (await take(own.text, { remember: false })) return;
      // Wrong, but somebody's work: it stays in the editor with what is wrong, beside the page's own pictures.
      await take(source.text, { remember: false, typed: true });
      $('text').value = own.text;
      read(own.text).then((answer) => { if (!answer.ok) problems(answer.problems || [], answer.text); });
      return;
    }
    if (own && own.bad) banner('The state in the address cannot be read; this is the page’s own scenario.');
    await take(source.text, { remember: false });
  })();
})();
