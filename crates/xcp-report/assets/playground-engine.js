/* The engine of a playground page (crates/xcp-wasm): compiled once, and run by workers (playground-worker.js), each of which is asked one thing at a
   time. What is asked, and what becomes of the answers, is playground.js's business. */
const xcpEngine = (() => {
  'use strict';

  const { $, page } = xcpPage;

  let compiled = null;
  const workerAddress = URL.createObjectURL(new Blob([page.worker], { type: 'text/javascript' }));
  const compile = async () => {
    const bytes = Uint8Array.from(atob($('playground-engine').textContent), (c) => c.charCodeAt(0));
    if (!window.DecompressionStream) throw new Error('This browser is too old for this page: it needs Chrome 80, Firefox 113, Safari 16.4 or a later one.');
    const plain = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
    return WebAssembly.compile(plain);
  };

  // A worker with an engine, one request at a time. Whoever has waited long enough ends it and gets a new one.
  class Engine {
    constructor() { this.next = 1; this.waiting = null; this.start(); }

    start() {
      this.worker = new Worker(workerAddress);
      this.worker.onmessage = ({ data }) => {
        const waiting = this.waiting;
        if (!waiting || data.id !== waiting.id) return;
        if (data.partial) { waiting.partial(data.partial); return; }
        this.waiting = null;
        if (data.failed) { this.restart(); waiting.done({ ok: false, text: `The engine failed unexpectedly: ${data.failed}` }); } else waiting.done(data.answer);
      };
      this.worker.onerror = (event) => {
        event.preventDefault();
        const waiting = this.waiting;
        this.waiting = null;
        this.restart();
        if (waiting) waiting.done({ ok: false, text: 'The engine failed unexpectedly.' });
      };
      this.worker.postMessage({ module: compiled });
    }

    restart() { this.worker.terminate(); this.start(); }

    // Ends what it does; nobody hears of that again.
    stop() {
      if (!this.waiting) return;
      const waiting = this.waiting;
      this.waiting = null;
      this.restart();
      waiting.done(null);
    }

    ask(request, partial = () => {}) {
      return new Promise((done) => {
        const id = this.next++;
        this.waiting = { id, partial, done, since: performance.now() };
        this.worker.postMessage({ id, request });
      });
    }
  }

  // Requests to the reader, one after the other; a text that takes it long is given up.
  let reader = null;
  let queue = Promise.resolve();
  const askReader = (request, patience = 4000) => {
    const asked = queue.then(async () => {
      const clock = setTimeout(() => reader.stop(), patience);
      const answer = await reader.ask(request);
      clearTimeout(clock);
      return answer || { ok: false, text: 'Reading this takes too long; it was given up.' };
    });
    queue = asked.catch(() => {});
    return asked;
  };

  const start = async () => {
    compiled = await compile();
    reader = new Engine();
  };

  return { Engine, askReader, start };
})();
