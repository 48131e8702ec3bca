/* A worker of the playground page: an engine (crates/xcp-wasm) and its requests, one at a time. Gets {module}, then {id, request}; posts {id, answer},
   while a run goes on {id, partial}, and {id, failed} where the engine broke down and is of no further use. */
'use strict';
let engine = null;
let current = 0;
let told = '';
const text = (at, length) => new TextDecoder().decode(new Uint8Array(engine.memory.buffer, at, length));
// Arrays are copied as they lie there: the engine moves its memory as it likes after that.
const take = (Kind, [at, length]) => new Kind(engine.memory.buffer, at, length).slice();
const numbers = (answer) => {
  const out = { ...answer, times: take(Float64Array, answer.times) };
  out.series = answer.series.map(([of, name, quantity, where]) => ({ of, name, quantity, values: Float32Array.from(take(Float64Array, where)) }));
  if (answer.packets) {
    const kinds = { frames: Float32Array, waiting: Uint32Array, left: Float32Array, arrives: Float32Array, direction: Uint8Array, flow: Uint8Array, look: Uint8Array };
    out.packets = { ...answer.packets };
    for (const [key, Kind] of Object.entries(kinds)) out.packets[key] = take(Kind, answer.packets[key]);
  }
  return out;
};
const buffers = (answer) => [answer.times, ...answer.series.map((s) => s.values), ...Object.values(answer.packets || {})].filter(ArrayBuffer.isView).map((a) => a.buffer);
const page = {
  clock: () => performance.now(),
  partial: (at, length) => {
    const partial = numbers(JSON.parse(text(at, length)));
    postMessage({ id: current, partial }, buffers(partial));
  },
  failed: (at, length) => { told = text(at, length); },
};
onmessage = ({ data }) => {
  if (data.module) {
    engine = new WebAssembly.Instance(data.module, { page }).exports;
    postMessage({ ready: true });
    return;
  }
  current = data.id;
  try {
    const bytes = new TextEncoder().encode(JSON.stringify(data.request));
    const at = engine.allocate(bytes.length);
    new Uint8Array(engine.memory.buffer, at, bytes.length).set(bytes);
    const length = engine.answer(at, bytes.length);
    let answer = JSON.parse(text(engine.answer_at(), length));
    if (answer.times) answer = numbers(answer);
    postMessage({ id: data.id, answer }, answer.times ? buffers(answer) : []);
  } catch (error) {
    postMessage({ id: data.id, failed: told || String(error) });
  }
};
