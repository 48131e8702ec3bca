/* Shows what `xcpnet serve` sees: tables of the last look, curves of the last hour. Everything that comes goes into the page as text. */
(() => {
  'use strict';
  const $ = (id) => document.getElementById(id);
  const make = (tag, properties = {}, ...children) => { const e = Object.assign(document.createElement(tag), properties); e.append(...children); return e; };
  const number = (x) => (typeof x !== 'number' || !Number.isFinite(x) ? '–' : String(+x.toPrecision(3)));
  const scaled = (x, units) => { if (typeof x !== 'number') return ['–', '']; const [size, name] = units.find(([s]) => Math.abs(x) >= s) || units.at(-1); return [number(x / size), name]; };
  const rate = (x) => scaled(x, [[1e9, 'Gbit/s'], [1e6, 'Mbit/s'], [1e3, 'kbit/s'], [1, 'bit/s']]);
  const time = (x) => scaled(x, [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs']]);
  const bytes = (x) => scaled(x, [[1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [1, 'bytes']]);
  const plain = (x) => [number(x), ''];
  const figure = (name, [value, unit], big) => make('div', { className: big ? 'figure big' : 'figure' }, make('dt', { textContent: name }), make('dd', {}, `${value} `, make('small', { textContent: unit })));

  const HOUR = 3600;
  const hour = [];
  const things = { routers: new Map(), proxies: new Map() };
  const none = (box, text) => box.replaceChildren(make('p', { className: 'note', textContent: text }));

  // A router's or a proxy's place, kept from look to look.
  const thing = (kind, name) => {
    let there = things[kind].get(name);
    if (!there) {
      there = { sub: make('p', { className: 'sub' }), numbers: make('dl'), plot: make('div', { className: 'plot' }), table: make('div', { className: 'wide' }), uplot: null };
      there.plot.setAttribute('role', 'img');
      there.box = make('article', { className: 'thing' }, make('h3', { textContent: name }), there.sub, there.numbers, make('figure', {}, there.plot), there.table);
      things[kind].set(name, there);
    }
    return there;
  };
  const draw = (there, label, values, range, unit) => {
    const data = [hour.map((look) => look.at), values];
    const colour = getComputedStyle(document.documentElement).getPropertyValue('--c0').trim();
    const soft = getComputedStyle(document.documentElement).getPropertyValue('--soft').trim();
    const width = there.plot.clientWidth;
    if (!width) return;
    if (there.uplot && (there.width !== width || there.colour !== colour)) { there.uplot.destroy(); there.uplot = null; }
    if (!there.uplot) {
      const axis = { stroke: soft, font: '12px system-ui, sans-serif', ticks: { show: false }, grid: { show: false } };
      there.width = width;
      there.colour = colour;
      there.uplot = new uPlot({ width, height: there.plot.clientHeight, legend: { show: false }, cursor: { drag: { x: false, y: false } }, scales: { y: { range } }, series: [{}, { stroke: colour, width: 1.5, points: { show: false } }], axes: [{ ...axis, size: 40 }, { ...axis, size: 44, values: (u, ticks) => ticks.map((v) => `${number(v)}${unit}`) }] }, data, there.plot);
    } else there.uplot.setData(data);
    there.plot.setAttribute('aria-label', `${label}, the last hour: now ${number(values.at(-1))}${unit}`);
  };
  const table = (heads, rows) => {
    const body = rows.map((cells) => make('tr', {}, ...cells.map((c) => make('td', { textContent: c }))));
    return make('table', {}, make('thead', {}, make('tr', {}, ...heads.map((h) => make('th', { textContent: h, scope: 'col' })))), make('tbody', {}, ...body));
  };
  const settle = (kind, list, nothing) => {
    const box = $(kind);
    const names = new Set(list.map((t) => t.name));
    for (const [name, there] of things[kind]) if (!names.has(name)) { if (there.uplot) there.uplot.destroy(); there.box.remove(); things[kind].delete(name); }
    if (!list.length) { none(box, nothing); return; }
    box.querySelectorAll(':scope > .note').forEach((e) => e.remove());
    for (const t of list) if (t.there.box.parentElement !== box) box.append(t.there.box);
  };

  const routers = (list, unseen) => {
    const shown = list.map((r) => ({ name: String(r.dev), there: thing('routers', String(r.dev)), r }));
    settle('routers', shown, unseen ? 'Cannot be seen.' : 'None in this network namespace.');
    for (const { name, there, r } of shown) {
      there.sub.textContent = `${rate(r.capacity).join(' ')}, ${String(r.qdisc)}, hook ${String(r.hook)}`;
      there.numbers.replaceChildren(figure('Utilisation', [number(100 * r.utilisation), '%'], true), figure('Waiting', bytes(r.backlog), true), figure('Drops', plain(r.drops), true), figure('Persistent queue', bytes(r.persistent_queue)), figure('Mean RTT', time(r.mean_rtt)), figure('Flows', plain(r.flows_estimated)), figure('φ', rate(r.phi)));
      draw(there, `Utilisation of ${name}`, hour.map((look) => (look.routers[name] ? 100 * look.routers[name][0] : null)), [0, 105], ' %');
    }
  };
  const proxies = (list, unseen) => {
    const shown = list.map((p) => ({ name: String(p.name), there: thing('proxies', String(p.name)), p }));
    settle('proxies', shown, unseen ? 'Cannot be seen.' : 'None in this network namespace.');
    for (const { name, there, p } of shown) {
      const gateway = p.gateway || {};
      there.sub.textContent = `long link ${String(p.wan)}${p.draining ? ', draining' : ''}${p.error ? `: ${String(p.error)}` : ''}`;
      there.numbers.replaceChildren(figure('Connections', plain(p.connections_in_all), true), figure('In use', rate(gateway.input_traffic), true), figure('of', rate(gateway.capacity)), figure('Servers not reached', plain(p.unreached)));
      draw(there, `Connections of ${name}`, hour.map((look) => (typeof look.proxies[name] === 'number' ? look.proxies[name] : null)), (u, low, high) => [0, Math.max(1, high * 1.1)], '');
      const rows = (p.connections || []).map((c) => [String(c.client), String(c.server ?? '–'), String(c.state), bytes(c.to_client).join(' '), bytes(c.to_server).join(' '), bytes(c.held).join(' ')]);
      there.table.replaceChildren(...(rows.length ? [table(['client', 'server', 'state', 'to client', 'to server', 'held'], rows)] : []));
    }
  };
  const endpoint = (e, unseen) => {
    const box = $('endpoint');
    if (!e || !e.enabled) { none(box, unseen ? 'Cannot be seen.' : 'Not enabled.'); return; }
    const counts = e.counts || {};
    box.replaceChildren(make('article', { className: 'thing' }, make('dl', {}, figure('Connections', plain(e.connections_in_all), true), figure('Agreed', plain(counts.agreed), true), figure('Fallen back: peer', plain(counts.fallen_peer)), figure('silence', plain(counts.fallen_silent)), figure('too late', plain(counts.fallen_late)))));
  };
  const show = (look) => {
    const unseen = Array.isArray(look.unseen) ? look.unseen : [];
    $('unseen').replaceChildren(...unseen.map((text) => make('li', { textContent: `Not seen: ${text}` })));
    $('when').textContent = `Read at ${new Date(1000 * look.at).toLocaleTimeString()}; ${hour.length} s kept.`;
    document.body.classList.remove('old');
    routers(look.routers || [], !look.routers);
    proxies(look.proxies || [], !look.proxies);
    endpoint(look.endpoint, !look.endpoint);
  };
  const keep = (look) => {
    const of = (list, name, value) => Object.fromEntries((list || []).map((t) => [String(t[name]), value(t)]));
    hour.push({ at: look.at, routers: of(look.routers, 'dev', (r) => [r.utilisation, r.backlog]), proxies: of(look.proxies, 'name', (p) => p.connections_in_all) });
    if (hour.length > HOUR) hour.shift();
  };

  window.serving = { hour, show, keep, looks: 0 };
  const events = new EventSource('events');
  events.addEventListener('hour', ({ data }) => { hour.splice(0, hour.length, ...JSON.parse(data)); });
  events.onmessage = ({ data }) => {
    const look = JSON.parse(data);
    if (!hour.length || look.at > hour.at(-1).at) keep(look);
    show(look);
    window.serving.looks++;
  };
  events.onerror = () => { $('when').textContent = 'The program does not answer; the readings below are old.'; document.body.classList.add('old'); };
})();
