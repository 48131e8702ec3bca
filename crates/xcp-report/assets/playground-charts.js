/* The charts of a playground page: a row for each quantity, a column for each variant, all with the cursor at the same time. What has been run, and
   what a click does, is playground.js's business. */
const xcpCharts = (() => {
  'use strict';

  const { $, make, state, columns, variants, columnName, mainLink, colours } = xcpPage;
  const { number, unitFor, cut } = xcpNumbers;

  const ROWS = [
    { key: 'utilisation', heading: 'Utilisation', note: 'share of the link’s capacity in use', of: 'link', column: 'utilisation', unit: 'share', top: 1.05 },
    { key: 'queue', heading: 'Queue', note: 'packets waiting: mean of each interval', of: 'link', column: 'queue_mean_packets', unit: 'packets' },
    { key: 'cwnd', heading: 'Congestion window', note: 'packets that each sender may have in flight', of: 'flow', column: 'cwnd_packets', unit: 'packets' },
    { key: 'goodput', heading: 'Goodput', note: 'new data that reached the receiving application', of: 'flow', column: 'goodput_bps', unit: 'bps', cut: true },
    { key: 'drops', heading: 'Drops', note: 'packets dropped by the queue in each interval', of: 'link', column: 'drops', unit: 'packets', bars: true },
  ];
  for (const row of ROWS) {
    row.unitOut = make('span', { className: 'unit' });
    row.ofOut = make('span', { className: 'unit' });
    row.grid = make('div', { className: 'grid' });
    row.section = make('section', { className: 'row' }, make('h3', {}, `${row.heading} `, row.unitOut, row.ofOut), make('p', { className: 'note', textContent: row.note }), row.grid);
    row.section.dataset.row = row.key;
    $('rows').append(row.section);
  }
  const sync = uPlot.sync('playground');
  // What is done with a time that was clicked.
  let clicked = () => {};
  const onTime = (then) => { clicked = then; };

  // Puts the charts of the variants shown into their rows; returns whether any have come or gone.
  const buildRows = () => {
    let changed = false;
    for (const row of ROWS) {
      row.grid.style.setProperty('--cols', columns.length);
      const figures = columns.map((c) => {
        c.plots[row.key] = c.plots[row.key] || plotPlace();
        return c.plots[row.key].figure;
      });
      if (figures.some((f, i) => row.grid.children[i] !== f) || row.grid.children.length !== figures.length) { row.grid.replaceChildren(...figures); changed = true; }
      columns.forEach((c) => { c.plots[row.key].caption.textContent = variants()[c.variant].name; });
    }
    return changed;
  };
  const plotPlace = () => {
    const caption = make('b');
    const at = make('span', { className: 'at' });
    const box = make('div', { className: 'plot' });
    box.setAttribute('role', 'img');
    const legend = make('ul', { className: 'legend' });
    return { figure: make('figure', {}, make('figcaption', {}, caption, at), box, legend), caption, at, box, legend, uplot: null, shape: '' };
  };
  // The curves of a row and variant: [{name, values}].
  const curves = (row, c) => {
    if (!c.answer) return [];
    if (row.of === 'link') return c.answer.series.filter((s) => s.of === 'link' && s.name === mainLink() && s.quantity === row.column).map((s) => ({ name: '', values: s.values }));
    return c.answer.series.filter((s) => s.of === 'flow' && s.quantity === row.column);
  };
  const drawRows = () => {
    // All sizes before anything is written, after which the browser would have to lay the page out anew for each.
    for (const { key } of ROWS) for (const { plots } of columns) plots[key].size = [plots[key].box.clientWidth, plots[key].box.clientHeight];
    for (const row of ROWS) {
      const lists = columns.map((c) => curves(row, c));
      const range = extent(row, lists);
      const unit = unitFor(row.unit, Math.max(range[1], -range[0]));
      row.unitOut.textContent = unit[1];
      row.ofOut.textContent = row.of === 'link' ? ` · ${mainLink()}` : range[2] ? ` · peaks up to ${number(range[2] / unit[0])} cut off` : '';
      columns.forEach((c, i) => { if (c.answer) drawPlot(row, c, lists[i], range, unit); });
    }
  };
  const extent = (row, lists) => {
    let high = 0;
    let low = 0;
    for (const { values } of lists.flat()) for (const v of values) { if (v > high) high = v; if (v < low) low = v; }
    if (row.top) return [0, Math.max(row.top, high)];
    const pad = (high - low) * 0.06 || 1;
    const top = row.cut ? cut(lists.flat().flatMap(({ values }) => [...values]), high) : null;
    if (top !== null) return [0, top, high];
    return [low < 0 ? low - pad : 0, high + pad];
  };
  const plain = (values) => Array.from(values, (v) => (Number.isNaN(v) ? null : v));
  const drawPlot = (row, c, list, range, unit) => {
    const p = c.plots[row.key];
    const [width, height] = p.size;
    const more = variants()[c.variant].groups.reduce((sum, g) => sum + g.count, 0) - list.length;
    const shape = [width, height, colours.paper, more, ...list.map(({ name }) => name)].join();
    const scale = [...range, ...unit, variants()[c.variant].duration, columnName(c)].join();
    // What is there already is not drawn again.
    if (p.uplot && p.shape === shape && p.scale === scale && p.time === state.time && p.times === c.answer.times && list.every(({ values }, i) => values === p.list[i].values)) return;
    const data = [Array.from(c.answer.times), ...list.map((entity) => plain(entity.values))];
    Object.assign(p, { unit, range, list, scale, duration: variants()[c.variant].duration, time: state.time, times: c.answer.times });
    if (!p.uplot || p.shape !== shape) {
      if (p.uplot) p.uplot.destroy();
      p.shape = shape;
      const small = width < 260;
      const axis = { stroke: colours.soft, font: `${small ? 10 : 12}px system-ui, sans-serif`, ticks: { show: false }, gap: 5 };
      const style = (i) => ({ points: { show: false }, stroke: colours.colours[i % 8], width: list.length > 5 ? 1.25 : 1.75, ...(row.bars ? { fill: colours.colours[i % 8], width: 0, paths: uPlot.paths.bars({ size: [1, Infinity, 1.5] }) } : {}) });
      p.uplot = new uPlot({
        width, height, padding: [8, 12, 0, 0], legend: { show: false },
        scales: { x: { time: false, range: () => [0, p.duration] }, y: { range: () => [p.range[0], p.range[1]] } },
        series: [{}, ...list.map((_, i) => style(i))],
        axes: [
          { ...axis, size: 24, space: 56, grid: { show: false }, values: (u, ticks) => ticks.map((t) => `${+t.toPrecision(9)} s`) },
          { ...axis, size: small ? 36 : 44, space: 30, grid: { stroke: colours.grid, width: 1 }, values: (u, ticks) => ticks.map((v) => String(+(v / p.unit[0]).toPrecision(6))) },
        ],
        cursor: { y: false, points: { show: false }, drag: { x: false, y: false }, sync: { key: sync.key } },
        hooks: {
          setCursor: [(u) => readPlot(p, u.cursor.idx)],
          draw: [(u) => { const x = u.valToPos(state.time, 'x', true); u.ctx.save(); u.ctx.fillStyle = colours.accent; u.ctx.fillRect(x - 0.5, u.bbox.top, Math.max(1, devicePixelRatio), u.bbox.height); u.ctx.restore(); }],
        },
      }, data, p.box);
      p.uplot.over.addEventListener('click', () => { if (p.uplot.cursor.idx !== null && p.uplot.cursor.left >= 0) clicked(p.uplot.posToVal(p.uplot.cursor.left, 'x')); });
      p.legend.replaceChildren(...(list.length > 1 || row.of === 'flow' ? list : []).map((entity, i) => {
        const swatch = make('i');
        swatch.style.borderTopColor = colours.colours[i % 8];
        return make('li', {}, make('span', {}, swatch, `${entity.name} `, make('span', { className: 'v' })));
      }));
      if (row.of === 'flow' && more > 0 && list.length) p.legend.append(make('li', { textContent: `and ${more} more flows, not drawn` }));
    } else {
      p.uplot.setData(data);
    }
    readPlot(p, null);
    p.box.querySelectorAll('.none').forEach((e) => e.remove());
    if (!list.length || (row.bars && list.every(({ values }) => values.every((v) => !v)))) p.box.append(make('div', { className: 'none', textContent: list.length ? 'no drops' : 'not recorded in this run' }));
    p.box.setAttribute('aria-label', `${row.heading}, ${columnName(c)}: ${list.slice(0, 8).map(({ name, values }) => words(name, values, unit)).join('; ') || 'not recorded'}`);
  };
  const words = (name, values, unit) => {
    let [low, high, sum, n] = [Infinity, -Infinity, 0, 0];
    for (const v of values) if (!Number.isNaN(v)) { low = Math.min(low, v); high = Math.max(high, v); sum += v; n++; }
    return n ? `${name ? `${name} ` : ''}from ${number(low / unit[0])} to ${number(high / unit[0])}, mean ${number(sum / n / unit[0])} ${unit[1]}` : `${name} without data`;
  };
  const readPlot = (p, index) => {
    if (!p.uplot) return;
    const there = index !== null && index !== undefined;
    const values = p.list.map((_, i) => (there ? p.uplot.data[i + 1][index] : null));
    const out = [...p.legend.querySelectorAll('.v')];
    out.forEach((e, i) => { e.textContent = there ? number(values[i] === null ? null : values[i] / p.unit[0]) : ''; });
    p.at.textContent = there ? `${out.length ? '' : `${number(values[0] / p.unit[0])} ${p.unit[1]} at `}${number(p.uplot.data[0][index])} s` : '';
  };
  const redrawPlots = () => { for (const c of columns) for (const p of Object.values(c.plots)) if (p.uplot) { p.time = state.time; p.uplot.redraw(false); } };

  return { ROWS, buildRows, drawRows, redrawPlots, onTime };
})();
