/* Numbers as people read them, by the rules of the tables (crates/xcp-report/src/human.rs), with which a test compares them. */
const xcpNumbers = (() => {
  'use strict';

  const none = (x) => x === null || x === undefined || !Number.isFinite(x);
  // Of two that are equally near the even one, as in the tables; toFixed takes the larger.
  const fixed = (x, digits) => {
    const text = x.toFixed(digits);
    const last = Number(text.at(-1));
    const between = (Math.abs(x) * 2 ** (digits + 1)) % 2 === 1;
    return between && last % 2 ? `${text.slice(0, -1)}${last - 1}` : text;
  };
  const number = (x) => {
    if (none(x)) return '–';
    const a = Math.abs(x);
    if (a < 0.0005) return '0';
    return String(+fixed(x, a < 0.9995 ? 3 : a < 9.995 ? 2 : a < 99.95 ? 1 : 0));
  };
  const percent = (x) => (none(x) ? '–' : `${fixed(x * 100, 1)} %`);
  const index = (x) => (none(x) ? '–' : fixed(x, 4));

  // From where on which unit, and its size: a number that is rounded to a thousand has the next one.
  const UNITS = {
    bps: [[999.5e6, 1e9, 'Gbit/s'], [999.5e3, 1e6, 'Mbit/s'], [999.5, 1e3, 'kbit/s'], [0, 1, 'bit/s']],
    seconds: [[0.9995, 1, 's'], [0.9995e-3, 1e-3, 'ms'], [0, 1e-6, 'µs']],
    bytes: [[999.5e3, 1e6, 'MB'], [999.5, 1e3, 'kB'], [0, 1, 'bytes']],
  };
  const hasUnits = (kind) => kind === 'share' || kind in UNITS;
  // The unit in which a value, the largest of a row, reads best: [size, name].
  const unitFor = (kind, largest) => {
    const a = Math.abs(largest);
    if (kind === 'share') return [0.01, '%'];
    if (!hasUnits(kind)) return a >= 1e6 ? [1e3, `thousand ${kind}`] : [1, kind];
    if (kind === 'seconds' && a === 0) return [1, 's'];
    return UNITS[kind].find(([from]) => !(a < from)).slice(1);
  };
  const withUnit = (kind, x) => {
    if (none(x)) return '–';
    const [size, name] = unitFor(kind, x);
    return `${number(x / size)} ${name}`;
  };

  // Where to cut off an axis, if anywhere: what waited behind a lost packet is delivered at once, in peaks of many times the link's rate that would
  // flatten all the rest.
  const cut = (values, high) => {
    const sorted = values.filter((v) => v !== null && !Number.isNaN(v)).sort((a, b) => a - b);
    const usual = sorted[Math.floor(0.99 * (sorted.length - 1))] || 0;
    return usual > 0 && high > 1.8 * usual ? 1.2 * usual : null;
  };

  return { number, percent, index, hasUnits, unitFor, withUnit, cut };
})();
