/* The address of a playground page, which keeps what was made of it: written after each change, read when the page opens. Whatever stands there comes
   from anybody: it is at most so long, and of the kinds that it should be. */
const xcpAddress = (() => {
  'use strict';

  const { inAddress, chosen, source, SHOWN, state } = xcpPage;

  // What differs from the page as it was made: text, link, group, variants shown, time. Compressed, in letters that addresses may have.
  const LONGEST = 1 << 20;
  const squeeze = async (text) => {
    const bytes = new Uint8Array(await new Response(new Blob([text]).stream().pipeThrough(new CompressionStream('deflate-raw'))).arrayBuffer());
    return btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join('')).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
  };
  const unsqueeze = async (letters) => {
    const bytes = Uint8Array.from(atob(letters.replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw')).getReader();
    const parts = [];
    let length = 0;
    for (;;) {
      const { done, value } = await stream.read();
      if (done) break;
      length += value.length;
      if (length > LONGEST) { stream.cancel().catch(() => {}); throw new Error('too long'); }
      parts.push(value);
    }
    return new Blob(parts).text();
  };
  let keeping = 0;
  const keep = () => {
    clearTimeout(keeping);
    keeping = setTimeout(async () => {
      const own = { text: state.text, link: state.link, group: state.group, shown: state.shown, time: +state.time.toFixed(3) };
      const changed = state.text !== source.text || state.shown || state.time || ['link', 'group'].some((key) => state[key] !== state.usual[key]);
      const fragment = [chosen ? `f=${chosen}` : '', changed ? `s=${await squeeze(JSON.stringify(own))}` : ''].filter(Boolean).join('&');
      try { history.replaceState(null, '', fragment ? `#${fragment}` : location.pathname + location.search); state.kept = own.text; } catch { /* an address that cannot be changed is only less handy */ }
    }, 400);
  };
  const fromAddress = async () => {
    const found = inAddress('s');
    if (!/^[\w-]{1,400000}$/.test(found || '')) return null;
    try {
      const own = JSON.parse(await unsqueeze(found));
      const name = (x) => (typeof x === 'string' ? x : null);
      if (typeof own.text !== 'string') return null;
      const shown = Array.isArray(own.shown) ? own.shown.filter((i) => Number.isInteger(i) && i >= 0).slice(0, SHOWN) : null;
      return { text: own.text, link: name(own.link), group: name(own.group), shown, time: Number.isFinite(own.time) ? own.time : 0 };
    } catch {
      return { bad: true };
    }
  };

  return { keep, fromAddress };
})();
