/* The picture of a playground page's packets at a point of time: nodes, links, what is under way on them, and what waits. Which time that is, is
   playground.js's business. */
const xcpPackets = (() => {
  'use strict';

  const { $, make, state, variants, columnName, colours } = xcpPage;

  // Nodes by their distance from where the first flow begins, those of one distance below one another.
  const layout = (variant, width, height) => {
    const n = variant.nodes.length;
    const distance = Array(n).fill(-1);
    const start = variant.groups.length ? variant.groups[0].from : 0;
    for (const seed of [start, ...Array(n).keys()]) {
      if (distance[seed] >= 0) continue;
      distance[seed] = 0;
      const line = [seed];
      while (line.length) {
        const at = line.shift();
        for (const { ends } of variant.links) {
          const other = ends[0] === at ? ends[1] : ends[1] === at ? ends[0] : -1;
          if (other >= 0 && distance[other] < 0) { distance[other] = distance[at] + 1; line.push(other); }
        }
      }
    }
    const used = new Set(variant.links.flatMap((l) => l.ends));
    const layers = [];
    // The first flow's way lies straight; what hangs on it goes below and above.
    const way = new Set();
    if (variant.groups.length) for (const d of variant.groups[0].route) if (variant.links[d >> 1]) variant.links[d >> 1].ends.forEach((e) => way.add(e));
    for (let node = 0; node < n; node++) if (used.has(node)) (layers[distance[node]] = layers[distance[node]] || []).push(node);
    const deep = Math.max(1, ...layers.map((l) => (l || []).length));
    const places = [];
    layers.forEach((layer, x) => {
      layer.sort((a, b) => way.has(b) - way.has(a) || a - b).forEach((node, k) => {
        const offset = k === 0 ? 0 : (k % 2 ? 1 : -1) * Math.ceil(k / 2);
        places[node] = [34 + (width - 68) * (layers.length > 1 ? x / (layers.length - 1) : 0.5), height / 2 + offset * Math.min(64, (height - 70) / deep)];
      });
    });
    return places;
  };

  // Crossings by direction, in order of time.
  const indexed = (c) => {
    if (c.index) return c.index;
    const { packets } = c.answer;
    c.index = packets.directions.map(() => []);
    for (let i = 0; i < packets.left.length; i++) c.index[packets.direction[i]].push(i);
    return c.index;
  };
  const drawPackets = (c) => {
    const { canvas } = c;
    const variant = variants()[c.variant];
    if (!variant) return;
    const width = canvas.parentElement.clientWidth;
    if (!width) return;
    const wide = new Set(variant.links.flatMap((l) => l.ends)).size;
    const height = wide > 4 ? 280 : 210;
    const ratio = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
    }
    const g = canvas.getContext('2d');
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    const places = layout(variant, width, height);
    const packets = c.answer && c.answer.packets;
    const t = state.time;
    const frame = packets && packets.frames.length ? Math.min(packets.frames.length - 1, Math.max(0, Math.floor((t / packets.frames[packets.frames.length - 1]) * packets.frames.length) - 1)) : -1;
    const flowColours = $('colours').value === 'flow';
    let underWay = 0;
    // Flows side by side, as far as there is room.
    const rows = Math.min(variant.groups.reduce((sum, group) => sum + group.count, 0), 5);
    const queues = [];
    variant.links.forEach((link, l) => {
      for (const way of [0, 1]) {
        const d = 2 * l + way;
        const [a, b] = way ? [places[link.ends[1]], places[link.ends[0]]] : [places[link.ends[0]], places[link.ends[1]]];
        const length = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
        const [ux, uy] = [(b[0] - a[0]) / length, (b[1] - a[1]) / length];
        const at = (share, aside) => { const s = 16 + (length - 32) * share; return [a[0] + ux * s + uy * aside, a[1] + uy * s - ux * aside]; };
        g.strokeStyle = colours.grid;
        g.lineWidth = 6 * rows + 2;
        g.beginPath(); g.moveTo(...at(0, 3 + 3 * rows)); g.lineTo(...at(1, 3 + 3 * rows)); g.stroke();
        if (!packets || d >= packets.directions.length) continue;
        // Packets on the cable, the last that left first.
        const line = indexed(c)[d];
        let [lo, hi] = [0, line.length];
        while (lo < hi) { const mid = (lo + hi) >> 1; if (packets.arrives[line[mid]] <= t) lo = mid + 1; else hi = mid; }
        for (let k = lo; k < line.length && packets.left[line[k]] <= t; k++) {
          const i = line[k];
          const [x, y] = at((t - packets.left[i]) / (packets.arrives[i] - packets.left[i] || 1), 6 + 6 * (packets.flow[i] % rows));
          underWay++;
          mark(g, x, y, packets.look[i], flowColours ? colours.colours[packets.flow[i] % 8] : null);
        }
        const waiting = frame >= 0 ? packets.waiting[frame * packets.directions.length + d] : 0;
        if (waiting > 0) {
          const limit = link.limit || 1;
          queues.push({ at: at(0, 0), aside: 8 + 6 * rows, up: way === 0 ? -1 : 1, share: Math.min(1, waiting / limit), waiting });
        }
      }
    });
    for (const q of queues) {
      const [x, y] = q.at;
      const tall = 44;
      const top = q.up < 0 ? y - q.aside - tall : y + q.aside;
      g.fillStyle = colours.grid;
      g.fillRect(x - 6, top, 12, tall);
      g.fillStyle = q.share > 0.9 ? colours.bad : colours.colours[4];
      const h = Math.max(2, tall * q.share);
      g.fillRect(x - 6, q.up < 0 ? y - q.aside - h : y + q.aside, 12, h);
      g.fillStyle = colours.ink;
      g.font = '12px system-ui, sans-serif';
      g.textAlign = 'center';
      g.fillText(String(q.waiting), x, q.up < 0 ? top - 4 : top + tall + 12);
    }
    g.textAlign = 'center';
    g.textBaseline = 'middle';
    g.font = '12px system-ui, sans-serif';
    places.forEach((place, node) => {
      if (!place) return;
      g.fillStyle = colours.paper;
      g.strokeStyle = colours.ink;
      g.lineWidth = 1.5;
      g.beginPath(); g.arc(place[0], place[1], 14, 0, 2 * Math.PI); g.fill(); g.stroke();
      g.fillStyle = colours.ink;
      const name = variant.nodes[node];
      g.fillText(name.length > 4 ? `${name.slice(0, 3)}…` : name, place[0], place[1] + 0.5);
    });
    g.textBaseline = 'alphabetic';
    const longestQueue = queues.reduce((most, q) => Math.max(most, q.waiting), 0);
    canvas.setAttribute('aria-label', packets ? `${columnName(c)} at ${t.toFixed(2)} s: ${underWay} packets drawn on the links, longest queue ${longestQueue} packets` : `${columnName(c)}: running`);
  };
  // Up: more. Down: less. Square: neither. Acknowledgements are small.
  const mark = (g, x, y, look, colour) => {
    const acknowledgement = look === 1 || look >= 5;
    const kind = look >= 5 ? look - 3 : look;
    const s = acknowledgement ? 1.8 : 2.8;
    g.fillStyle = colour || (kind === 3 ? colours.colours[2] : kind === 4 ? colours.colours[1] : kind === 2 ? colours.colours[0] : colours.soft);
    g.beginPath();
    if (kind === 3) { g.moveTo(x, y - s); g.lineTo(x + s, y + s); g.lineTo(x - s, y + s); } else if (kind === 4) { g.moveTo(x, y + s); g.lineTo(x + s, y - s); g.lineTo(x - s, y - s); } else g.rect(x - s * 0.8, y - s * 0.8, s * 1.6, s * 1.6);
    g.fill();
  };
  const KEY = [['grants more window', 3], ['takes some away', 4], ['at rest', 2], ['without XCP', 0]];
  const buildKey = () => {
    const svg = (look) => {
      const ns = 'http://www.w3.org/2000/svg';
      const e = document.createElementNS(ns, 'svg');
      e.setAttribute('viewBox', '-6 -6 12 12');
      e.setAttribute('aria-hidden', 'true');
      const shape = document.createElementNS(ns, 'path');
      shape.setAttribute('d', look === 3 ? 'M0-5L5 4H-5Z' : look === 4 ? 'M0 5L5-4H-5Z' : 'M-4-4H4V4H-4Z');
      shape.setAttribute('fill', look === 3 ? colours.colours[2] : look === 4 ? colours.colours[1] : look === 2 ? colours.colours[0] : colours.soft);
      e.append(shape);
      return e;
    };
    $('key').replaceChildren(...KEY.map(([text, look]) => make('li', {}, svg(look), text)), make('li', { textContent: 'small: acknowledgements' }), make('li', { textContent: 'bars: queues, their number is packets' }));
  };

  return { drawPackets, buildKey };
})();
