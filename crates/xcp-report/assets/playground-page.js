/* What all parts of a playground page (playground.js) have in common: its elements and colours, what it was made of, the state it is in, and what
   that comes to. Of what the parts do with it this knows nothing. */
const xcpPage = (() => {
  'use strict';

  const $ = (id) => document.getElementById(id);
  const make = (tag, properties = {}, ...children) => { const e = Object.assign(document.createElement(tag), properties); e.append(...children); return e; };
  const root = document.documentElement;
  const page = JSON.parse($('playground-data').textContent);
  // The address says which of the page's scenarios (`#f=2`; the first) and what was made of it (`s=`).
  const inAddress = (key) => new URLSearchParams(location.hash.slice(1)).get(key);
  const chosen = /^\d{1,6}$/.test(inAddress('f') || '') && page.sources[Number(inAddress('f'))] ? Number(inAddress('f')) : 0;
  const source = page.sources[chosen];
  const fileName = source.name.replace(/^.*[/\\]/, '') || 'scenario.toml';
  const SHOWN = 3;

  // ---- state ----------------------------------------------------------------------------------------------------------------------------

  const state = { name: fileName, text: source.text, read: null, link: null, group: null, usual: {}, shown: null, time: 0, past: [], anyway: false };
  // What is on the page of each variant that is shown: {engine, answer, wanted, ...}.
  const columns = [];

  const variants = () => (state.read ? state.read.variants : []);
  const shownVariants = () => {
    const all = variants().map((_, i) => i);
    const chosen = (state.shown || all).filter((i) => i < all.length).slice(0, SHOWN);
    return chosen.length ? chosen : all.slice(0, SHOWN);
  };
  const first = () => variants()[shownVariants()[0]];
  const columnName = (column) => (variants()[column.variant] || {}).name || 'Simulated';
  const mainLink = () => {
    const variant = first();
    if (!variant || !state.link) return '';
    const i = variant.links.findIndex((l) => l.name === state.link);
    return variant.main !== null && variant.main >> 1 === i && variant.main % 2 ? `${state.link}.reverse` : state.link;
  };

  // ---- colours --------------------------------------------------------------------------------------------------------------------------

  const theme = () => {
    const style = getComputedStyle(root);
    const get = (name) => style.getPropertyValue(`--${name}`).trim();
    return { paper: get('paper'), ink: get('ink'), soft: get('soft'), grid: get('grid'), line: get('line'), mark: get('mark'), accent: get('accent'), bad: get('bad'), colours: [0, 1, 2, 3, 4, 5, 6, 7].map((i) => get(`c${i}`)) };
  };
  const colours = theme();
  // After they have changed: dark or light, screen or paper.
  const takeColours = () => Object.assign(colours, theme());

  return {
    $, make, root, page, inAddress, chosen, source, fileName, SHOWN, state, columns, variants, shownVariants, first, columnName, mainLink, colours, takeColours,
  };
})();
