/* Where `xcpnet serve --lab` allows it: runs a scenario and shows how far it is and what came of it. */
(() => {
  'use strict';
  const $ = (id) => document.getElementById(id);
  if (!$('lab')) return;
  const buttons = [...document.querySelectorAll('#lab [data-on]')];
  let known = -1;
  let timer = 0;

  const out = (text, bad) => { $('lab-out').textContent = text; $('lab-out').hidden = !text; $('lab-out').classList.toggle('warn', !!bad); };
  const show = (told) => {
    for (const button of buttons) button.disabled = told.running;
    $('lab-stop').disabled = !told.running;
    $('lab-share').hidden = !told.running;
    $('lab-share').value = told.share;
    $('lab-report').hidden = !told.report;
    const title = told.title || 'the scenario';
    $('lab-said').textContent = told.running ? `${title}, ${told.on}: ${Math.round(100 * told.share)} %` : told.number ? `${title}, ${told.on}: ${told.failed ? 'not done' : 'done'}` : '';
    if (!told.running && told.number !== known) { known = told.number; out(told.text, told.failed); }
    clearTimeout(timer);
    if (told.running) timer = setTimeout(look, 500);
  };
  const ask = async (address, options) => {
    try {
      const answer = await fetch(address, options);
      const text = await answer.text();
      // Refused at the door is told in plain words, refused by the reader as an object.
      if (!answer.ok) { out(/json/.test(answer.headers.get('content-type')) ? JSON.parse(text).text : text, true); return; }
      show(JSON.parse(text));
    } catch { $('lab-said').textContent = 'The program does not answer.'; clearTimeout(timer); timer = setTimeout(look, 2000); }
  };
  const look = () => ask('run');
  for (const button of buttons) {
    button.addEventListener('click', () => {
      known = -1;
      out('');
      ask(`run?on=${button.dataset.on}`, { method: 'POST', headers: { 'Content-Type': 'application/toml' }, body: $('lab-text').value });
    });
  }
  $('lab-stop').addEventListener('click', () => ask('stop', { method: 'POST' }));
  look();
})();
