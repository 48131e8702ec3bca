/* Charts to keep: a chart's curves as SVG on the sheet of `xcpnet plot`, an SVG as PNG, numbers as CSV, the menu that offers them, and the
   saving. What a sheet looks like is told by the program (`look`, crates/xcp-report/src/plot/layout.rs), which draws its own alike. */
const xcpFigure = (() => {
  'use strict';

  // Dots to a CSS pixel of a PNG: 576 to the inch of a sheet.
  const DOTS = 6;
  const FONT = 'Helvetica, Arial, sans-serif';
  const ruler = document.createElement('canvas').getContext('2d');
  const XML = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
  // Control characters have no place in XML, escaped or not.
  const words = (text) => [...String(text)].map((c) => XML[c] || (c < ' ' || (c >= '\u007f' && c < '\u00a0') ? ' ' : c)).join('');
  const short = (x) => String(+x.toFixed(2));

  // ---- a sheet --------------------------------------------------------------------------------------------------------------------------

  // At most `most` steps of 1, 2 or 5 times a power of ten.
  const ticks = (low, high, most) => {
    const rough = (high - low) / most;
    const decade = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * decade).find((s) => s >= rough * 0.999) || 10 * decade;
    const first = Math.ceil(low / step);
    const last = Math.floor(high / step + 1e-9);
    if (!Number.isFinite(step) || !(last - first < 100)) return [];
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => (first + i) * step);
  };
  const label = (value, size) => { const text = (value / size).toFixed(6).replace(/\.?0+$/, ''); return text === '-0' ? '0' : text; };

  // The least and the greatest value of each stretch in their order; few points as they are.
  const thinned = (points, most) => {
    const stretch = Math.ceil(points.length / most);
    if (stretch <= 2) return points;
    const out = [];
    for (let i = 0; i < points.length; i += stretch) {
      const there = points.slice(i, i + stretch).filter((p) => p[1] !== null);
      if (!there.length) { out.push([points[i][0], null]); continue; }
      const least = there.reduce((a, b) => (b[1] < a[1] ? b : a));
      const greatest = there.reduce((a, b) => (b[1] >= a[1] ? b : a));
      if (least === greatest) out.push(least); else out.push(...(least[0] <= greatest[0] ? [least, greatest] : [greatest, least]));
    }
    return out;
  };
  // Stretches of points that have a value.
  const parts = (points) => {
    const out = [[]];
    for (const p of points) if (p[1] === null) out.push([]); else out[out.length - 1].push(p);
    return out.filter((part) => part.length > 1);
  };

  // `chart`: {title, x and y: {name, low, high, size, unit}, curves: [{name, kind, colour, points or, for a band, low, middle, high}]}, points
  // being [time, value or null]. Kinds: line, area, bars, band, dashed, dotted.
  const svg = (look, chart) => {
    const { width, left, right, bottom, size, leading } = look;
    // Room for Helvetica and for what this machine has instead.
    ruler.font = `${size}px ${FONT}`;
    const textWidth = (text) => Math.max(ruler.measureText(text).width, [...text].reduce((sum, c) => sum + (look.letters[c.codePointAt(0) - 32] || 556), 0) * size / 1000);
    const { x, y, curves } = chart;
    const items = [];
    const path = (points, close = '') => points.map(([a, b], i) => `${i ? 'L' : 'M'}${short(a)} ${short(b)}`).join('') + close;
    const line = (points, colour, thick, dashes = []) => items.push(`<path d="${path(points)}" fill="none" stroke="${colour}" stroke-width="${thick}" stroke-linejoin="round"${dashes.length ? ` stroke-dasharray="${dashes.join(' ')}"` : ''}/>`);
    const fill = (points, colour, share) => items.push(`<path d="${path(points, 'z')}" fill="${colour}" fill-opacity="${share}"/>`);
    const text = (at, what, anchor, upright) => items.push(`<text x="${short(at[0])}" y="${short(at[1])}" font-size="${size}" text-anchor="${anchor}" fill="#222"${upright ? ` transform="rotate(-90 ${short(at[0])} ${short(at[1])})"` : ''}>${words(what)}</text>`);
    const THEORY = { dashed: [4, 2], dotted: [1, 1.5] };
    const looks = (curve) => (THEORY[curve.kind] ? ['#777777', THEORY[curve.kind]] : [look.colours[curve.colour % look.colours.length], curve.kind === 'line' ? look.dashes[curve.colour % look.dashes.length] : []]);

    // The names, in as many lines as they need; a single curve needs none.
    let top = 6;
    if (curves.length > 1) {
      let [at, row] = [left, 0];
      for (const curve of curves) {
        const wide = 14 + 3 + textWidth(curve.name) + 8;
        if (at + wide > width && at > left) [at, row] = [left, row + leading];
        const middle = 6 + row + size * 0.65;
        const [colour, dashes] = looks(curve);
        if (curve.kind === 'area' || curve.kind === 'bars') fill([[at, middle - 2.5], [at + 14, middle - 2.5], [at + 14, middle + 2.5], [at, middle + 2.5]], colour, curve.kind === 'area' ? 0.25 : 1);
        else line([[at, middle], [at + 14, middle]], colour, 1, dashes);
        text([at + 17, middle + size * 0.35], curve.name, 'start');
        at += wide;
      }
      top = 6 + row + leading + 3;
    }
    const height = look.height + top;
    const floor = height - bottom;
    const share = (axis, v) => Math.min(1, Math.max(0, (v - axis.low) / (axis.high - axis.low)));
    const across = (v) => left + share(x, v) * (width - left - right);
    const up = (v) => top + (1 - share(y, v)) * (floor - top);
    const placed = (points) => points.map(([a, b]) => [across(a), up(b)]);

    for (const value of ticks(y.low, y.high, 5)) {
      line([[left, up(value)], [width - right, up(value)]], look.grey, 0.4);
      text([left - 3, up(value) + size * 0.35], label(value, y.size), 'end');
    }
    for (const value of ticks(x.low, x.high, 6)) {
      line([[across(value), floor], [across(value), floor + 2.5]], look.black, 0.5);
      text([across(value), floor + 3 + size], label(value, x.size), 'middle');
    }
    line([[left, top], [left, floor], [width - right, floor]], look.black, 0.6);
    const called = (axis) => (axis.unit ? `${axis.name} (${axis.unit})` : axis.name);
    text([left + (width - left - right) / 2, height - 4], called(x), 'middle');
    text([size + 1, top + (floor - top) / 2], called(y), 'middle', true);

    for (const curve of curves) {
      const [colour, dashes] = looks(curve);
      const within = (points) => thinned(points.filter(([t]) => t >= x.low && t <= x.high), look.stretches);
      if (curve.kind === 'band') {
        // Between two curves, wherever both have a value.
        const between = (low, high, opacity) => {
          const both = low.map(([t, v], i) => [t, v === null || high[i][1] === null ? null : v, high[i][1]]).filter(([t]) => t >= x.low && t <= x.high);
          for (const part of parts(both)) fill([...placed(part.map((p) => [p[0], p[2]])), ...placed(part).reverse()], colour, opacity);
        };
        between(curve.least, curve.greatest, 0.16);
        between(curve.low, curve.high, 0.26);
      }
      for (const part of parts(within(curve.points))) {
        if (curve.kind === 'area') fill([[across(part[0][0]), up(Math.max(0, y.low))], ...placed(part), [across(part[part.length - 1][0]), up(Math.max(0, y.low))]], colour, 0.25);
        else if (curve.kind === 'bars') part.filter((p) => p[1]).forEach((p) => line([[across(p[0]), up(0)], [across(p[0]), up(p[1])]], colour, 0.8));
        else line(placed(part), colour, 1, dashes);
      }
    }
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}pt" height="${short(height)}pt" viewBox="0 0 ${width} ${short(height)}" role="img" font-family="${FONT}">\n<title>${words(chart.title)}</title>\n<rect width="${width}" height="${short(height)}" fill="#fff"/>\n${items.join('\n')}\n</svg>\n`;
  };

  // ---- other kinds of files -------------------------------------------------------------------------------------------------------------

  // A data address and not a blob's: pages' policies allow images no other.
  const png = async (text) => {
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await image.decode();
    const canvas = Object.assign(document.createElement('canvas'), { width: Math.round(DOTS * image.naturalWidth), height: Math.round(DOTS * image.naturalHeight) });
    const g = canvas.getContext('2d');
    g.fillStyle = '#fff';
    g.fillRect(0, 0, canvas.width, canvas.height);
    g.drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((done) => { canvas.toBlob(done, 'image/png'); });
  };
  // The shortest text that reads back as the same 32-bit number; pages carry no others.
  const decimal = (v) => {
    if (v === null || v === undefined || !Number.isFinite(v)) return '';
    for (let digits = 6; digits < 9; digits++) { const text = +v.toPrecision(digits); if (Math.fround(text) === Math.fround(v)) return String(text); }
    return String(v);
  };
  const csv = (rows) => `${rows.map((row) => row.map((cell) => (/[",\n\r]/.test(cell) ? `"${cell.replace(/"/g, '""')}"` : cell)).join(',')).join('\n')}\n`;

  // ---- saving ---------------------------------------------------------------------------------------------------------------------------

  const slug = (name, otherwise) => name.replace(/[^\p{L}\p{N}_.]+/gu, '-').replace(/^[.-]+|[.-]+$/g, '').slice(0, 60) || otherwise;
  const save = (name, blob) => {
    const link = Object.assign(document.createElement('a'), { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  // A file of a chart: `made` gives its name without an end, `svg()` and `csv()`.
  const file = async (kind, made) => {
    const name = `${made.name()}.${kind}`;
    if (kind === 'csv') return [name, new Blob([made.csv()], { type: 'text/csv' })];
    const text = made.svg();
    return [name, kind === 'png' ? await png(text) : new Blob([text], { type: 'image/svg+xml' })];
  };
  // A small menu at a chart.
  const menu = (what, made) => {
    const make = (tag, properties, ...children) => { const e = Object.assign(document.createElement(tag), properties); e.append(...children); return e; };
    const told = make('span', { className: 'sr', textContent: ` ${what}` });
    const details = make('details', { className: 'save' }, make('summary', { textContent: 'Save' }, told));
    const button = (kind) => {
      const b = make('button', { type: 'button', textContent: kind.toUpperCase() });
      b.addEventListener('click', async () => { details.open = false; save(...await file(kind, made)); });
      return b;
    };
    details.append(make('div', {}, button('svg'), button('png'), button('csv')));
    details.addEventListener('keydown', (event) => { if (event.key === 'Escape') { details.open = false; details.firstChild.focus(); } });
    details.addEventListener('focusout', (event) => { if (event.relatedTarget && !details.contains(event.relatedTarget)) details.open = false; });
    details.file = (kind) => file(kind, made);
    return details;
  };

  return { svg, png, csv, decimal, slug, save, menu, words, FONT };
})();
