/* Lets the charts of the papers' pages be saved. They are SVG already; what stands around them on the page (heading, names of the curves) is put
   into the file, and the page's style into its elements. Without this script the pages lack nothing else. */
(() => {
  'use strict';

  const root = document.documentElement;
  const SVG = 'http://www.w3.org/2000/svg';
  const LINE = 12;
  const STYLE = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linejoin', 'opacity', 'font-size', 'text-anchor'];
  const make = (name, attributes, text = '') => {
    const e = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    e.textContent = text;
    return e;
  };
  const ruler = document.createElement('canvas').getContext('2d');
  const style = (of, to) => { const own = getComputedStyle(of); for (const key of STYLE) to.setAttribute(key, own.getPropertyValue(key)); };

  // The chart with its heading above and, below, what the curves are called; in the colours of paper.
  const sheet = (chart, heading, legend) => {
    root.classList.add('printing');
    const [, , width, height] = chart.getAttribute('viewBox').split(' ').map(Number);
    const copy = chart.cloneNode(true);
    const originals = chart.querySelectorAll('*');
    copy.querySelectorAll('*').forEach((e, i) => {
      style(originals[i], e);
      for (const name of ['class', 'data-name', 'data-points']) e.removeAttribute(name);
    });
    const keys = [];
    ruler.font = `9.5px ${xcpFigure.FONT}`;
    let [x, y] = [34, height + 10];
    for (const item of legend ? legend.children : []) {
      const name = item.textContent;
      const room = 20 + ruler.measureText(name).width + 10;
      if (x + room > width && x > 34) { x = 34; y += LINE; }
      const key = make('path', { d: `M${x} ${y - 3}h16` });
      style(item.querySelector('path'), key);
      key.setAttribute('stroke-width', '1.6');
      keys.push(key, make('text', { x: x + 20, y, 'font-size': 9.5, fill: '#222' }, name));
      x += room;
    }
    root.classList.remove('printing');
    const bottom = keys.length ? y + 4 : height;
    // On the page the last label of an axis may stand out.
    const wide = width + 8;
    const out = make('svg', { width: `${wide}pt`, height: `${bottom + LINE + 4}pt`, viewBox: `0 ${-LINE - 4} ${wide} ${bottom + LINE + 4}`, role: 'img', 'font-family': xcpFigure.FONT });
    out.append(make('title', {}, chart.getAttribute('aria-label')), make('rect', { y: -LINE - 4, width: wide, height: bottom + LINE + 4, fill: '#fff' }), make('text', { x: 4, y: -5, 'font-size': 10.5, fill: '#222' }, heading), ...copy.childNodes, ...keys);
    return `${new XMLSerializer().serializeToString(out)}\n`;
  };

  // What is drawn, in numbers: of curves each point, of numbers beside one another the table that the chart brings.
  const table = (chart) => {
    if (chart.dataset.table) return xcpFigure.csv(JSON.parse(chart.dataset.table).map((row) => row.map((cell) => (typeof cell === 'number' ? String(cell) : cell === null ? '' : cell))));
    const curves = [...chart.querySelectorAll('[data-points]')];
    const named = curves.some((c) => c.dataset.name);
    const spread = curves.some((c) => c.dataset.values === '3');
    const column = chart.dataset.column;
    const rows = [['time_s', ...(named ? ['curve'] : []), column, ...(spread ? [`${column}_min`, `${column}_max`] : [])]];
    for (const curve of curves) {
      const numbers = new Float32Array(Uint8Array.from(atob(curve.dataset.points), (c) => c.charCodeAt(0)).buffer);
      const three = curve.dataset.values === '3';
      for (let i = 0; i < numbers.length; i += three ? 4 : 2) {
        const values = three ? [numbers[i + 2], numbers[i + 1], numbers[i + 3]] : [numbers[i + 1], ...(spread ? [NaN, NaN] : [])];
        rows.push([xcpFigure.decimal(numbers[i]), ...(named ? [curve.dataset.name] : []), ...values.map(xcpFigure.decimal)]);
      }
    }
    return xcpFigure.csv(rows);
  };

  const menus = [...document.querySelectorAll('.charts figure')].map((figure) => {
    const chart = figure.querySelector('svg.chart');
    const row = figure.parentElement;
    const before = row.previousElementSibling;
    const after = row.nextElementSibling;
    const caption = figure.querySelector('figcaption') || figure.insertBefore(document.createElement('figcaption'), chart);
    const name = caption.textContent;
    const heading = [before && before.tagName === 'H3' ? before.textContent : '', name].filter(Boolean).join(', ');
    const made = {
      name: () => `${figure.closest('section').id}-${xcpFigure.slug(chart.getAttribute('aria-label'), 'chart')}`,
      svg: () => sheet(chart, heading, after && after.matches('.legend') ? after : null),
      csv: () => table(chart),
    };
    const menu = xcpFigure.menu(chart.getAttribute('aria-label'), made);
    const said = document.createElement('b');
    said.append(...caption.childNodes);
    caption.append(said, menu);
    return menu;
  });
  window.papers = { menus };
})();
