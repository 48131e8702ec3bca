/* Draws the report's plots with uPlot from the arrays the page carries. Small multiples: a row of plots shares its y axis, all plots share
   the cursor and the stretch of time shown. What is drawn can be read back from window.xcpnet.plots[i].uplot.data. */
(() => {
  'use strict';

  // ---- data -----------------------------------------------------------------------------------------------------------------------------

  const { number, hasUnits, unitFor, cut } = xcpNumbers;
  const source = JSON.parse(document.getElementById('xcpnet-data').textContent);
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  // uPlot knows gaps as null, the file as NaN.
  const floats = (text) => Array.from(new Float32Array(bytes(text)), (v) => (Number.isNaN(v) ? null : v));
  const curves = (thing) => {
    const out = {};
    for (const [key, value] of Object.entries(thing)) {
      if (typeof value === 'string' && key !== 'name') out[key] = floats(value);
      else if (Array.isArray(value)) out[key] = value.map(floats);
      else out[key] = value;
    }
    return out;
  };
  const runs = source.runs.map((run) => ({
    ...run,
    times: Array.from(new Float64Array(bytes(run.times))),
    links: Object.fromEntries(Object.entries(run.links).map(([name, link]) => [name, curves(link)])),
    flows: run.flows.map(curves),
    references: run.references.map((r) => ({ ...r, goodput_bps: floats(r.goodput_bps) })),
  }));
  const end = Math.max(0, ...runs.map((run) => run.completed));
  const theories = [...new Set(runs.flatMap((run) => run.references.map((r) => r.theory)))];
  const flowNames = [...new Set(runs.flatMap((run) => run.flows.map((flow) => flow.name)))];

  // ---- rows -----------------------------------------------------------------------------------------------------------------------------

  const ROWS = {
    utilisation: { of: 'link', column: 'utilisation', unit: 'share', summary: 'utilisation', top: 1.05 },
    queue: { of: 'link', column: 'queue_mean_packets', peak: 'queue_max_packets', unit: 'packets', summary: 'queue_mean' },
    drops: { of: 'link', column: 'drops', also: 'lost', bars: true, unit: 'packets', summary: 'drops', none: 'no drops' },
    goodput: { of: 'flow', column: 'goodput_bps', unit: 'bps', cut: true, references: true },
    cwnd: { of: 'flow', column: 'cwnd_packets', unit: 'packets' },
    srtt: { of: 'flow', column: 'srtt_s', unit: 'seconds' },
    retransmits: { of: 'flow', column: 'retransmits', unit: 'segments' },
    control_interval: { of: 'link', column: 'control_interval_s', unit: 'seconds' },
    flows_estimated: { of: 'link', column: 'flows_estimated', unit: 'flows' },
    phi: { of: 'link', column: 'phi_bps', unit: 'bps' },
    shuffled: { of: 'link', column: 'shuffled_bps', unit: 'bps' },
    persistent_queue: { of: 'link', column: 'persistent_queue_bytes', unit: 'bytes' },
    input_traffic: { of: 'link', column: 'input_traffic_bps', unit: 'bps' },
  };

  const ALL = '*';
  let chosen = source.bottlenecks.length > 1 && source.bottlenecks.length <= 6 ? ALL : source.links[0];
  const chosenLinks = () => (chosen === ALL ? source.bottlenecks : [chosen]);

  const state = { hidden: new Set(), view: [0, end] };

  // What one plot shows: [{name, label, colour, values (one array or five), at rest, hideable, style}].
  const entities = (row, run) => {
    if (row.of === 'flow') {
      const flows = run.flows
        .filter((flow) => flow[row.column])
        .map((flow) => ({ name: flow.name, colour: (flowNames.indexOf(flow.name) + 1) % 8, values: flow[row.column], rest: flow.summary[row.column], hideable: true }));
      // Theory's lines; at rest the legend shows where they end.
      const last = (values) => values.findLast((v) => v !== null);
      const lines = row.references && flows.length ? run.references : [];
      return flows.concat(lines.map((r) => ({ name: r.name, theory: r.theory, values: r[row.column], rest: last(r[row.column]), hideable: true, style: 'reference' })));
    }
    const names = chosenLinks().filter((name) => run.links[name] && run.links[name][row.column]);
    return names.flatMap((name, i) => {
      const link = run.links[name];
      const one = names.length === 1;
      const rest = row.summary && link.summary ? link.summary[row.summary] : undefined;
      const list = [{ name: one ? '' : name, colour: i, values: link[row.column], rest, style: row.bars && one ? 'bars' : 'line' }];
      if (one && row.peak && link[row.peak]) list.unshift({ name: 'largest', colour: i, values: link[row.peak], rest: link.summary && link.summary.queue_max, style: 'area' });
      if (one && row.peak) list[list.length - 1].name = 'mean';
      if (one && row.also && link[row.also] && runs.some((r) => r.links[name] && (r.links[name][row.also] || []).some((v) => v > 0))) {
        list[0].name = 'dropped by the queue';
        list.push({ name: 'lost on the link', colour: 1, values: link[row.also], rest: link.summary && link.summary.lost, style: 'bars' });
      }
      return list;
    });
  };
  const isBand = (entity) => Array.isArray(entity.values[0]);
  const line = (entity) => (isBand(entity) ? entity.values[2] : entity.values);

  // ---- drawing --------------------------------------------------------------------------------------------------------------------------

  const root = document.documentElement;
  const theme = () => {
    const style = getComputedStyle(root);
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    return { soft: read('soft'), grid: read('grid'), mark: read('mark'), colours: [0, 1, 2, 3, 4, 5, 6, 7].map((i) => read(`c${i}`)) };
  };
  const faded = (colour, share) => `${colour}${Math.round(share * 255).toString(16).padStart(2, '0')}`;

  const plots = [];
  const sync = uPlot.sync('xcpnet');

  const extent = (row, lists) => {
    let low = 0;
    let high = 0;
    for (const entity of lists.flat()) {
      for (const values of isBand(entity) ? [entity.values[0], entity.values[4]] : [entity.values]) {
        for (const v of values) {
          if (v > high) high = v;
          if (v < low) low = v;
        }
      }
    }
    if (row.top) return [0, Math.max(row.top, high)];
    const pad = (high - low) * 0.06 || 1;
    const top = row.cut ? cut(lists.flat().flatMap((entity) => (isBand(entity) ? entity.values[3] : entity.values)), high) : null;
    return top === null ? [low < 0 ? low - pad : 0, high + pad] : [0, top, high];
  };

  const describe = (row, heading, run, list, unit) => {
    const parts = list.map((entity) => {
      const values = line(entity).filter((v) => v !== null);
      if (!values.length) return `${entity.name} without data`;
      const show = (v) => number(v / unit[0]);
      let low = Infinity;
      let high = -Infinity;
      let sum = 0;
      for (const v of values) { low = Math.min(low, v); high = Math.max(high, v); sum += v; }
      return `${entity.name ? `${entity.name} ` : ''}from ${show(low)} to ${show(high)}, mean ${show(sum / values.length)} ${unit[1]}`;
    });
    return `${heading}, ${run.name}: ${parts.join('; ')}`;
  };

  // A plot in its place. Printing draws it three times as large and shrinks it, since a printer has more dots than the screen.
  const draw = (key, row, place, run, list, range, unit) => {
    const box = place.querySelector('.plot');
    const colours = theme();
    const k = root.classList.contains('printing') ? 3 : 1;
    const small = box.clientWidth < 260;
    const font = `${(small ? 10 : 12) * k}px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif`;
    const series = [{}];
    const data = [run.times];
    const bands = [];
    const legend = [];
    for (const entity of list) {
      const reference = entity.style === 'reference';
      const colour = reference ? colours.soft : colours.colours[entity.colour];
      const show = !state.hidden.has(entity.name);
      const add = (values, style) => { data.push(values); series.push({ show, points: { show: false }, scale: 'y', ...style }); return data.length - 1; };
      const edge = { stroke: 'transparent', width: 0 };
      let first;
      if (isBand(entity)) {
        const [lo, q1, mid, q3, hi] = entity.values;
        first = add(lo, edge);
        add(q1, edge);
        add(mid, { stroke: colour, width: 1.75 * k });
        add(q3, edge);
        add(hi, edge);
        bands.push({ series: [first + 4, first], fill: faded(colour, 0.16) }, { series: [first + 3, first + 1], fill: faded(colour, 0.26) });
        legend.push({ entity, colour, from: first, to: first + 4, value: first + 2 });
        continue;
      }
      if (entity.style === 'area') first = add(entity.values, { stroke: faded(colour, 0.45), width: k, fill: faded(colour, 0.14) });
      else if (entity.style === 'bars') first = add(entity.values, { stroke: colour, fill: colour, width: 0, paths: uPlot.paths.bars({ size: [1, Infinity, 1.5 * k] }) });
      else if (reference) first = add(entity.values, { stroke: colour, width: 1.25 * k, dash: (theories.indexOf(entity.theory) % 2 ? [2, 4] : [8, 4]).map((d) => d * k) });
      else first = add(entity.values, { stroke: colour, width: (k > 1 || list.length > 5 ? 1.25 : 1.75) * k });
      legend.push({ entity, colour, from: first, to: first, value: first });
    }
    const axis = { stroke: colours.soft, font, ticks: { show: false }, gap: 5 * k };
    const left = (small ? 36 : 44) * k;
    const uplot = new uPlot({
      width: box.clientWidth * k,
      height: box.clientHeight * k,
      padding: [8 * k, 16 * k, 0, 0],
      pxAlign: k === 1 ? 1 : 0,
      legend: { show: false },
      scales: { x: { time: false }, y: { range: [range[0], range[1]] } },
      series,
      bands,
      axes: [
        { ...axis, size: 24 * k, space: 56 * k, grid: { show: false }, values: (u, ticks) => ticks.map((t) => `${+t.toPrecision(9)} s`) },
        { ...axis, size: left, space: 30 * k, grid: { stroke: colours.grid, width: k }, values: (u, ticks) => ticks.map((v) => String(+(v / unit[0]).toPrecision(6))) },
      ],
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, dist: 6 },
        sync: { key: sync.key, filters: { pub: (type) => type === 'mousemove' || type === 'mouseleave' || type === 'mouseenter' } },
        bind: { dblclick: () => () => { zoom(0, end); return null; } },
      },
      hooks: {
        setCursor: [(u) => read(plot, u.cursor.idx)],
        setScale: [(u, name) => { if (name === 'x' && plot.live) zoom(u.scales.x.min, u.scales.x.max); }],
        draw: [(u) => markMeasured(u, run, colours.mark)],
      },
    }, data, box);
    if (k > 1) uplot.root.style.zoom = 1 / k;
    uplot.setScale('x', { min: state.view[0], max: state.view[1] });
    const plot = { key, row, run, uplot, legend, unit, place, live: false };
    // Scales settle in a microtask; only what comes after that is the reader's doing.
    setTimeout(() => { plot.live = true; });
    touch(uplot);
    plots.push(plot);
    place.querySelector('.legend').replaceChildren(...legend.filter(({ entity }) => entity.name).map((item) => legendItem(plot, item)));
    const box2 = place.querySelector('.plot');
    box2.setAttribute('role', 'img');
    offer(plot);
    box2.querySelectorAll('.none').forEach((e) => e.remove());
    if (!list.length || (row.none && list.every((entity) => line(entity).every((v) => !v)))) {
      const none = document.createElement('div');
      none.className = 'none';
      none.textContent = list.length ? row.none : 'not recorded in this run';
      box2.append(none);
    }
    read(plot, null);
    return plot;
  };

  // ---- charts to keep -------------------------------------------------------------------------------------------------------------------

  // What is shown of a plot, as figure.js draws it: the stretch of time, without the curves that are hidden.
  const shown = (plot) => plot.legend.filter(({ entity }) => !state.hidden.has(entity.name));
  const points = (run, values) => run.times.map((t, i) => [t, values[i] === undefined ? null : values[i]]);
  const sheet = (plot) => {
    const { row, run, uplot, unit } = plot;
    let colour = 0;
    // Numbered before anything is hidden, so that a flow keeps its colour.
    const numbers = new Map(plot.legend.map(({ entity }) => [entity, entity.style === 'reference' || entity.style === 'area' ? colour : colour++]));
    const curves = shown(plot).map(({ entity }) => {
      const kind = isBand(entity) ? 'band' : entity.style === 'reference' ? (theories.indexOf(entity.theory) % 2 ? 'dotted' : 'dashed') : entity.style === 'area' || entity.style === 'bars' ? entity.style : 'line';
      const curve = { name: entity.name, kind, colour: numbers.get(entity), points: points(run, line(entity)) };
      if (kind === 'band') [curve.least, curve.low, , curve.high, curve.greatest] = entity.values.map((v) => points(run, v));
      return curve;
    });
    const plain = !hasUnits(row.unit);
    const heading = plot.heading;
    const y = { name: plain ? `${heading}, ${unit[1]}` : heading, unit: plain ? '' : unit[1], size: unit[0], low: uplot.scales.y.min, high: uplot.scales.y.max };
    const x = { name: 'Time', unit: 's', size: 1, low: state.view[0], high: state.view[1] };
    return xcpFigure.svg(source.look, { title: `${document.title}: ${heading}, ${run.name}`, x, y, curves });
  };
  // The numbers that are shown, as the files of `run --out` have them.
  const table = (plot) => {
    const { row, run } = plot;
    const entities = shown(plot).map(({ entity }) => entity);
    const wide = entities.some(isBand);
    const [column, also] = [row.column, row.peak || row.also];
    const columns = row.of === 'link' ? [column, ...(also ? [also] : [])] : wide ? [column, 'min', 'q1', 'q3', 'max'].map((end, i) => (i ? `${column}_${end}` : end)) : [column];
    const names = row.of === 'link' ? chosenLinks().filter((name) => run.links[name] && run.links[name][column]) : entities;
    const out = [['time_s', row.of, ...columns]];
    for (const one of names) {
      const values = row.of === 'link' ? columns.map((c) => run.links[one][c] || []) : isBand(one) ? [2, 0, 1, 3, 4].map((i) => one.values[i]) : [one.values];
      run.times.forEach((t, i) => { if (t >= state.view[0] && t <= state.view[1]) out.push([String(t), row.of === 'link' ? one : one.name, ...columns.map((_, c) => xcpFigure.decimal(values[c] && values[c][i]))]); });
    }
    return xcpFigure.csv(out);
  };
  const offer = (plot) => {
    const { row, run, place } = plot;
    plot.heading = place.closest('.row').querySelector('h3').firstChild.textContent.trim();
    const caption = place.querySelector('figcaption');
    caption.querySelectorAll('.save').forEach((e) => e.remove());
    const name = () => `${xcpFigure.slug(document.title, 'run')}-${runs.length > 1 ? `${xcpFigure.slug(run.name, 'run')}-` : ''}${row.column}`;
    plot.menu = xcpFigure.menu(`${plot.heading}, ${run.name}`, { name, svg: () => sheet(plot), csv: () => table(plot) });
    caption.append(plot.menu);
  };

  // A bar on the axis under the part of the run that the summary covers.
  const markMeasured = (u, run, colour) => {
    if (!run.measure || (run.measure[0] <= 0 && run.measure[1] >= run.completed)) return;
    const from = Math.max(u.valToPos(run.measure[0], 'x', true), u.bbox.left);
    const to = Math.min(u.valToPos(run.measure[1], 'x', true), u.bbox.left + u.bbox.width);
    if (to <= from) return;
    const thick = 3 * (u.bbox.height / u.over.clientHeight || 1) * (root.classList.contains('printing') ? 3 : 1);
    u.ctx.save();
    u.ctx.fillStyle = colour;
    u.ctx.fillRect(from, u.bbox.top + u.bbox.height, to - from, thick);
    u.ctx.restore();
  };

  const legendItem = (plot, item) => {
    const li = document.createElement('li');
    const button = document.createElement(item.entity.hideable ? 'button' : 'span');
    const swatch = document.createElement('i');
    swatch.style.borderTopColor = item.entity.style === 'area' ? faded(item.colour, 0.4) : item.colour;
    if (item.entity.style === 'reference') swatch.style.borderTopStyle = theories.indexOf(item.entity.theory) % 2 ? 'dotted' : 'dashed';
    const value = document.createElement('span');
    value.className = 'v';
    button.append(swatch, `${item.entity.name} `, value);
    if (item.entity.hideable) {
      button.type = 'button';
      button.setAttribute('aria-pressed', String(!state.hidden.has(item.entity.name)));
      button.addEventListener('click', () => toggle(item.entity.name));
    }
    item.out = value;
    item.button = button;
    li.append(button);
    return li;
  };

  const toggle = (name) => {
    if (!state.hidden.delete(name)) state.hidden.add(name);
    for (const plot of plots) {
      for (const item of plot.legend.filter(({ entity }) => entity.hideable && entity.name === name)) {
        for (let i = item.from; i <= item.to; i++) plot.uplot.setSeries(i, { show: !state.hidden.has(name) }, false);
        item.button.setAttribute('aria-pressed', String(!state.hidden.has(name)));
      }
    }
  };

  // Values under the cursor; at rest the summary's figures.
  const read = (plot, index) => {
    if (!plot) return;
    const { uplot, unit, place, run } = plot;
    const at = place.querySelector('.at');
    const show = (v) => number(v === null || v === undefined ? v : v / unit[0]);
    const there = index !== null && index !== undefined;
    let text = there ? `${number(run.times[index])} s` : '';
    for (const item of plot.legend) {
      const value = there ? uplot.data[item.value][index] : item.entity.rest;
      if (item.out) item.out.textContent = value === undefined ? '' : show(value);
      else if (there) text = `${show(value)} ${unit[1]} at ${text}`;
    }
    at.textContent = text;
  };

  // ---- the stretch of time --------------------------------------------------------------------------------------------------------------

  const measured = runs.map((run) => run.measure).find((m) => m) || null;
  const zoomButtons = [...document.querySelectorAll('[data-zoom]')];
  const zoom = (from, to) => {
    if (!(to - from > 0) || (from === state.view[0] && to === state.view[1])) return;
    state.view = [from, to];
    for (const { uplot } of plots) {
      if (uplot.scales.x.min !== from || uplot.scales.x.max !== to) uplot.setScale('x', { min: from, max: to });
    }
    const is = (a, b) => String(a === from && b === to);
    for (const button of zoomButtons) button.setAttribute('aria-pressed', button.dataset.zoom === 'all' ? is(0, end) : is(...(measured || [])));
  };

  // One finger moves the cursor (the page still scrolls up and down), two fingers zoom.
  const touch = (u) => {
    let pinch = null;
    const spots = (event) => [...event.touches].map((t) => t.clientX - u.over.getBoundingClientRect().left);
    u.over.addEventListener('touchstart', (event) => {
      const xs = spots(event);
      if (xs.length === 2) pinch = { values: xs.map((x) => u.posToVal(x, 'x')) };
    }, { passive: true });
    u.over.addEventListener('touchmove', (event) => {
      const xs = spots(event);
      if (xs.length === 1) { u.setCursor({ left: xs[0], top: 10 }, true, true); return; }
      if (xs.length !== 2 || !pinch || Math.abs(xs[1] - xs[0]) < 12) return;
      if (event.cancelable) event.preventDefault();
      const scale = (pinch.values[1] - pinch.values[0]) / (xs[1] - xs[0]);
      if (!(scale > 0) && !(scale < 0)) return;
      const from = pinch.values[0] - xs[0] * Math.abs(scale);
      zoom(Math.max(0, from), Math.min(end, from + u.over.clientWidth * Math.abs(scale)));
    }, { passive: false });
    u.over.addEventListener('touchend', () => { pinch = null; }, { passive: true });
  };

  // ---- building the page ----------------------------------------------------------------------------------------------------------------

  const buildRow = (section) => {
    const key = section.dataset.row;
    const row = ROWS[key];
    const lists = runs.map((run) => entities(row, run));
    for (let i = plots.length - 1; i >= 0; i--) if (plots[i].key === key) plots.splice(i, 1)[0].uplot.destroy();
    const empty = lists.every((list) => !list.length);
    section.classList.toggle('empty', empty);
    if (empty) return;
    const range = extent(row, lists);
    const unit = unitFor(row.unit, Math.max(range[1], -range[0]));
    const heading = section.querySelector('h3').firstChild.textContent.trim();
    section.querySelector('.unit').textContent = unit[1];
    section.querySelector('.of').textContent = row.of === 'link' ? ` · ${chosenLinks().join(', ')}` : range.length > 2 ? ` · peaks up to ${number(range[2] / unit[0])} cut off` : '';
    section.querySelectorAll('figure').forEach((place) => {
      const run = runs[place.dataset.run];
      const list = lists[place.dataset.run];
      draw(key, row, place, run, list, range, unit);
      place.querySelector('.plot').setAttribute('aria-label', list.length ? describe(row, heading, run, list, unit) : `${heading}, ${run.name}: not recorded`);
    });
  };
  const more = document.getElementById('more');
  // No series, no places to draw them.
  if (!more) {
    window.xcpnet = { version: source.version, runs, plots };
    return;
  }
  // Hidden plots have no size, so they wait until they are shown.
  const build = (which) => document.querySelectorAll('.row').forEach((section) => {
    if ((more.open || !more.contains(section)) && (!which || ROWS[section.dataset.row].of === which)) buildRow(section);
  });
  more.addEventListener('toggle', () => { if (more.open) more.querySelectorAll('.row').forEach(buildRow); });
  // A collapsible section with nothing in it would be a disappointment.
  more.hidden = [...more.querySelectorAll('.row')].every((section) => runs.every((run) => !entities(ROWS[section.dataset.row], run).length));

  const tools = document.querySelector('.tools');
  const choice = tools.querySelector('#link-choice');
  const select = choice.querySelector('select');
  const option = (value, text) => { const o = document.createElement('option'); o.value = value; o.textContent = text; o.selected = value === chosen; select.append(o); };
  if (chosen === ALL) option(ALL, `all ${source.bottlenecks.length} bottlenecks`);
  source.links.forEach((name) => option(name, name));
  choice.hidden = source.links.length < 2;
  select.addEventListener('change', () => { chosen = select.value; build('link'); });
  for (const button of zoomButtons) {
    if (button.dataset.zoom === 'measured' && (!measured || (measured[0] <= 0 && measured[1] >= end))) button.hidden = true;
    button.addEventListener('click', () => (button.dataset.zoom === 'all' ? zoom(0, end) : zoom(...measured)));
  }
  if (matchMedia('(hover: none)').matches) tools.querySelector('.hint').textContent = 'Touch to read values in all plots; pinch to zoom.';
  tools.hidden = !runs.length;

  let width = 0;
  let waiting = false;
  new ResizeObserver(() => {
    if (waiting || root.classList.contains('printing')) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      if (document.body.clientWidth === width || root.classList.contains('printing')) return;
      width = document.body.clientWidth;
      for (const { uplot, place } of plots) {
        const box = place.querySelector('.plot');
        if (box.clientWidth) uplot.setSize({ width: box.clientWidth, height: box.clientHeight });
      }
    });
  }).observe(document.body);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => build());

  // On paper: light, as wide as the sheet, the scenario unfolded.
  let folded = [];
  addEventListener('beforeprint', () => {
    root.classList.add('printing');
    folded = [...document.querySelectorAll('details.source:not([open])')];
    for (const details of folded) details.open = true;
    build();
  });
  addEventListener('afterprint', () => {
    root.classList.remove('printing');
    for (const details of folded) details.open = false;
    build();
  });

  window.xcpnet = { version: source.version, runs, plots, zoom, choose: (name) => { select.value = name; select.dispatchEvent(new Event('change')); } };
  build();
  width = document.body.clientWidth;
})();
