// Answers requests with the engine of a playground page. node engine.mjs ENGINE.wasm.gz REQUESTS: one request a line in the file, one answer a line out.
import fs from 'node:fs';
import zlib from 'node:zlib';

const [, , file, requests] = process.argv;
let engine;
const text = (at, length) => new TextDecoder().decode(new Uint8Array(engine.memory.buffer, at, length));
const page = {
  clock: () => performance.now(),
  partial: (at, length) => { JSON.parse(text(at, length)); },
  failed: (at, length) => { process.stderr.write(`${text(at, length)}\n`); },
};
const { instance } = await WebAssembly.instantiate(zlib.gunzipSync(fs.readFileSync(file)), { page });
engine = instance.exports;
for (const request of fs.readFileSync(requests, 'utf8').split('\n').filter(Boolean)) {
  const bytes = new TextEncoder().encode(request);
  const at = engine.allocate(bytes.length);
  new Uint8Array(engine.memory.buffer, at, bytes.length).set(bytes);
  const length = engine.answer(at, bytes.length);
  fs.writeSync(1, `${text(engine.answer_at(), length)}\n`);
}
