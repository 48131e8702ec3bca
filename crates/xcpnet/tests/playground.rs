//! The playground page in a real browser: its numbers are the command line's, also after a slider
//! was moved; what is wrong with a text is told at its line; nothing of a scenario or an address is
//! executed, nothing is fetched.

#[path = "../../xcp-report/tests/common/browser.rs"]
#[allow(dead_code, reason = "each test program uses a part")]
mod browser;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use browser::Browser;
use serde_json::Value;

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_xcpnet"))
}

fn engine() -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("engine/engine.wasm.gz");
    if !file.is_file() {
        xcp_skip::skipped!("wasm", "no engine for pages, which `make wasm` builds");
        return None;
    }
    Some(file)
}

fn told(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// Writes a page; without a file that of the program's own scenario.
fn page(dir: &Path, file: Option<&Path>, engine: &Path) -> PathBuf {
    let out = dir.join("page.html");
    let mut command = program();
    command.arg("playground").args(file).arg("--out").arg(&out).arg("--engine").arg(engine);
    let written = command.output().unwrap();
    assert!(written.status.success(), "{}", told(&written));
    out
}

/// What the command line gives for a text.
fn summaries(dir: &Path, text: &str) -> Vec<Value> {
    let file = dir.join("exported.toml");
    std::fs::write(&file, text).unwrap();
    let out = program().arg("run").arg(&file).arg("--json").output().unwrap();
    assert!(out.status.success(), "{}", told(&out));
    let lines = String::from_utf8(out.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn wait(browser: &mut Browser, runs: u64) {
    let settled = browser.eval(&format!("playground.settled({runs})"));
    assert!(settled.as_u64().unwrap() > runs);
}

/// Does something that makes the page run again, and waits for that.
fn and_wait(browser: &mut Browser, expression: &str) {
    let runs = browser.eval("playground.state.runs").as_u64().unwrap();
    browser.eval(expression);
    wait(browser, runs);
}

/// The page's numbers and its text, which have to belong together.
fn same_as_the_command_line(browser: &mut Browser, dir: &Path) -> String {
    let text = browser.eval("document.getElementById('text').value").as_str().unwrap().to_owned();
    let shown = browser.eval("playground.summaries");
    assert_same(&shown, &Value::Array(summaries(dir, &text)), "");
    text
}

/// JavaScript does not tell 2 from 2.0.
fn assert_same(a: &Value, b: &Value, place: &str) {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => assert_eq!(a.as_f64(), b.as_f64(), "{place}"),
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{place}");
            a.iter().zip(b).zip(0..).for_each(|((a, b), i)| {
                assert_same(a, b, &format!("{place}/{i}"));
            });
        }
        (Value::Object(a), Value::Object(b)) => {
            assert!(a.keys().eq(b.keys()), "{place}");
            a.iter().for_each(|(k, a)| assert_same(a, &b[k], &format!("{place}/{k}")));
        }
        _ => assert_eq!(a, b, "{place}"),
    }
}

fn slide(name: &str, value: u32) -> String {
    format!(
        "(s => {{ s.value = {value}; s.dispatchEvent(new Event('input')); }})(document.getElementById('slider-{name}'))"
    )
}

#[test]
fn in_a_browser() {
    let Some(engine) = engine() else { return };
    let Some(chromium) = browser::find() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = page(dir.path(), None, &engine);
    assert!(std::fs::metadata(&path).unwrap().len() < 1_500_000);
    let mut browser = Browser::start(&chromium);

    browser.open(&path, 1400, 900);
    wait(&mut browser, 0);
    assert_eq!(browser.complaints(), Vec::<String>::new(), "quiet, and nothing is fetched");
    same_as_the_command_line(&mut browser, dir.path());
    sliders_and_choices(&mut browser, dir.path());
    errors_at_their_line(&mut browser);
    packets_move(&mut browser);
    it_exports(&mut browser);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    the_address_keeps_the_state(&mut browser, &path);

    browser.open(&path, 375, 800);
    wait(&mut browser, 0);
    let wide = browser.eval("document.scrollingElement.scrollWidth").as_u64().unwrap();
    assert!(wide <= 375, "{wide}");
    let named = "[...document.querySelectorAll('input, select, textarea, button')].filter((e) => \
        !e.closest('[hidden]') && !(e.labels && e.labels.length) && !e.textContent.trim() \
        && !e.getAttribute('aria-label')).map((e) => e.id)";
    assert_eq!(browser.eval(named), serde_json::json!([]), "everything to be used has a name");
    hostile(&mut browser, &engine);
    a_loss_keeps_its_direction(&mut browser, &engine);
    what_is_refused_changes_nothing(&mut browser);
    notes_stand_with_the_numbers(&mut browser);
    the_address_keeps_what_is_looked_at(&mut browser, &engine);
}

fn sliders_and_choices(browser: &mut Browser, dir: &Path) {
    let before = same_as_the_command_line(browser, dir);
    for (name, value, expected) in [
        ("rate", 24, "rate    = \"2.5mbit\""),
        ("delay", 25, "delay   = \"30ms\""),
        ("flows", 1, "count      = 2"),
        ("loss", 6, "loss = 0.005"),
        ("buffer", 8, "limit = \"2bdp\""),
        ("duration", 1, "duration = \"5s\""),
    ] {
        and_wait(browser, &slide(name, value));
        let text = same_as_the_command_line(browser, dir);
        assert!(text.contains(expected), "{name}: {text}");
        the_charts_show_the_last_run(browser);
    }
    let offered = "!document.getElementById('compare-bar').hidden";
    assert_eq!(browser.eval(offered), false, "CUBIC is there already");
    let choose = |id: &str, value: &str| {
        format!(
            "(s => {{ s.value = '{value}'; s.dispatchEvent(new Event('change')); }})(document.getElementById('{id}'))"
        )
    };
    for (id, value, expected) in [
        ("congestion-1", "reno", "\"flow.congestion\" = \"reno\""),
        ("kind-1", "red", "\"link.bottleneck.queue.kind\" = \"red\""),
        ("law-0", "ixcp", "ixcp"),
    ] {
        and_wait(browser, &choose(id, value));
        let text = same_as_the_command_line(browser, dir);
        assert!(text.contains(expected), "{id}: {text}");
        the_charts_show_the_last_run(browser);
    }
    assert_eq!(browser.eval(offered), true);
    and_wait(browser, "document.getElementById('compare').click()");
    assert_eq!(browser.eval("playground.columns.length"), 3);
    same_as_the_command_line(browser, dir);
    the_charts_show_the_last_run(browser);
    and_wait(browser, "document.getElementById('undo').click()");
    and_wait(browser, "document.getElementById('reset').click()");
    assert_eq!(same_as_the_command_line(browser, dir), before);
}

/// What has not changed is not drawn again; all else is, over the whole of the run.
fn the_charts_show_the_last_run(browser: &mut Browser) {
    let wrong = "playground.columns.flatMap((c) => { \
        const values = c.answer.series.find((s) => s.name === 'bottleneck' && \
        s.quantity === 'queue_mean_packets').values; \
        const { uplot } = c.plots.queue; \
        const shown = [uplot.scales.x.max, ...uplot.data[0], ...uplot.data[1]].join(); \
        const { duration } = playground.state.read.variants[c.variant]; \
        const run = [duration, ...c.answer.times, ...values].join(); \
        return shown === run ? [] : [shown, run]; })";
    assert_eq!(browser.eval(wrong), serde_json::json!([]));
}

fn errors_at_their_line(browser: &mut Browser) {
    let typed = "playground.take(document.getElementById('text').value.replace('rate ', 'rote '), \
        { typed: true })";
    assert_eq!(browser.eval(typed), false);
    let said = browser.eval("document.getElementById('problems').innerText");
    let said = said.as_str().unwrap();
    assert!(said.contains("unknown key `rote`") && said.contains("line "), "{said}");
    assert!(said.contains("^^^^") && said.contains("help: "), "{said}");
    browser.eval(
        "document.getElementById('text').value = document.getElementById('text').value.replace('rate \
        ', 'rote '); [...document.querySelectorAll('#problems button')].find((b) => \
        b.textContent.includes('rote')).click()",
    );
    let selected = "(t => t.value.slice(t.selectionStart, t.selectionEnd))\
        (document.getElementById('text'))";
    assert_eq!(browser.eval(selected), "rote", "the caret goes where the fault is");
    // A slider changes the last correct text; what was typed comes back by Undo, with its error.
    let shown = "document.getElementById('text').value";
    let typed = browser.eval(shown);
    and_wait(browser, &slide("flows", 4));
    assert_ne!(browser.eval(shown), typed);
    assert_eq!(browser.eval("document.getElementById('problems').children.length"), 0);
    let undone = "document.getElementById('undo').click(); new Promise((done) => { const look = () => \
        (document.getElementById('problems').children.length ? done(0) : setTimeout(look, 10)); \
        setTimeout(() => done(1), 20000); look(); })";
    assert_eq!(browser.eval(undone), 0);
    assert_eq!(browser.eval(shown), typed);
    and_wait(browser, "document.getElementById('undo').click()");
    and_wait(browser, "playground.take(playground.state.text)");
    assert_eq!(browser.eval("document.getElementById('problems').children.length"), 0);
}

fn packets_move(browser: &mut Browser) {
    let at = |share: u32| {
        format!(
            "(t => {{ t.value = {share}; t.dispatchEvent(new Event('input')); return document.querySelector('canvas.packets').toDataURL(); }})(document.getElementById('time'))"
        )
    };
    let early = browser.eval(&at(300));
    assert_ne!(early, browser.eval(&at(302)));
    assert_eq!(early, browser.eval(&at(300)), "the same time, the same picture");
    let label = browser.eval("document.querySelector('canvas.packets').getAttribute('aria-label')");
    assert!(label.as_str().unwrap().contains("packets drawn on the links"), "{label}");
    browser.eval("document.getElementById('play').click()");
    let before = browser.eval("playground.state.time").as_f64().unwrap();
    let moved = browser.eval(
        "new Promise((done) => { const t = playground.state.time; const look = () => \
        (playground.state.time > t ? done(playground.state.time) : setTimeout(look, 10)); look(); })",
    );
    assert!(moved.as_f64().unwrap() > before);
    browser.eval("document.getElementById('play').click()");
    assert_eq!(browser.eval("document.getElementById('play').textContent"), "Play");
}

fn it_exports(browser: &mut Browser) {
    let exported = |browser: &mut Browser, kind: &str| {
        let made = browser.eval(&format!(
            "playground.exported('{kind}').then(async ([name, blob]) => [name, blob.type === 'image/png' ? [...new Uint8Array(await blob.arrayBuffer(), 0, 4)].join() : await blob.text()])"
        ));
        (made[0].as_str().unwrap().to_owned(), made[1].as_str().unwrap().to_owned())
    };
    let (name, text) = exported(browser, "toml");
    assert_eq!(name, "four-flows.toml");
    assert_eq!(browser.eval("playground.state.text"), text);
    let (name, text) = exported(browser, "links.csv");
    assert_eq!(name, "XCP.links.csv");
    assert!(text.starts_with("time_s,link,utilisation"), "{}", &text[..60]);
    let (_, text) = exported(browser, "json");
    let shown = browser.eval("playground.summaries[0]");
    assert_same(&serde_json::from_str::<Value>(&text).unwrap(), &shown, "");
    assert!(exported(browser, "svg").1.starts_with("<svg"));
    assert_eq!(
        exported(browser, "png"),
        ("four-flows-utilisation.png".into(), "137,80,78,71".into())
    );
    // What is to run while a table is being written runs after it: here the table takes until the
    // text has been read.
    let meanwhile = "(async () => { \
        const { engine } = playground.columns[0]; \
        const heard = engine.worker.onmessage; \
        let answer; \
        const written = new Promise((done) => { engine.worker.onmessage = (e) => { answer = e; done(); }; }); \
        const made = playground.exported('links.csv'); \
        await written; \
        await playground.take(playground.state.text.replace('rate    = \"10mbit\"', 'rate    = \"9mbit\"')); \
        engine.worker.onmessage = heard; \
        heard.call(engine.worker, answer); \
        await made; })()";
    let text = browser.eval("playground.state.text");
    let runs = browser.eval("playground.state.runs").as_u64().unwrap();
    browser.eval(meanwhile);
    assert_ne!(browser.eval("playground.state.text"), text);
    let settled = format!(
        "Promise.race([playground.settled({runs}).then(() => true), new Promise((done) => \
         {{ setTimeout(() => done(false), 60000); }})])"
    );
    assert_eq!(browser.eval(&settled), true, "what was to run has run");
    and_wait(browser, "document.getElementById('undo').click()");
}

fn the_address_keeps_the_state(browser: &mut Browser, path: &Path) {
    and_wait(browser, &slide("flows", 5));
    let text = browser.eval("playground.state.text");
    let kept = "new Promise((done) => { const look = () => (playground.state.kept === \
        playground.state.text ? done(location.hash) : setTimeout(look, 20)); look(); })";
    let address = browser.eval(kept);
    let address = address.as_str().unwrap();
    assert!(address.starts_with("#s="), "{address}");
    // Pasted into a tab that shows the page already.
    and_wait(browser, &slide("flows", 2));
    assert_ne!(browser.eval(kept), address);
    browser.loading(|browser| {
        browser.eval(&format!("setTimeout(() => {{ location.hash = '{address}'; }}); 0"));
    });
    wait(browser, 0);
    assert_eq!(browser.eval("playground.state.text"), text);
    // Another page first: a new fragment alone loads nothing anew.
    let blank = path.with_file_name("blank.html");
    std::fs::write(&blank, "<!doctype html>").unwrap();
    let open = |browser: &mut Browser, fragment: &str| {
        browser.open(&blank, 1400, 900);
        let address = format!("{}{fragment}", path.display());
        browser.open(Path::new(&address), 1400, 900);
        wait(browser, 0);
    };
    open(browser, address);
    assert_eq!(browser.eval("playground.state.text"), text);
    assert_eq!(browser.eval("document.getElementById('banner').hidden"), false);
    // What is no state is told, and the page shows its own.
    for wrong in ["#s=AAAA", "#s=eJw", "#other", "#s=<img src=x>"] {
        open(browser, wrong);
        assert_eq!(browser.eval("playground.state.past.length"), 0);
        assert_eq!(browser.eval("playground.columns.length"), 2, "{wrong}");
    }
    // One that is markup through and through, and wrong as a scenario.
    let hostile = "(async () => { const text = '</textarea><img src=x onerror=stolen=1>'; const own = JSON.stringify({ text, link: text, group: text, shown: [text, -1, 1e9], time: text }); const bytes = new Uint8Array(await new Response(new Blob([own]).stream().pipeThrough(new CompressionStream('deflate-raw'))).arrayBuffer()); return '#s=' + btoa(String.fromCharCode(...bytes)).replace(/\\+/g, '-').replace(/\\//g, '_').replace(/=+$/, ''); })()";
    let hostile = browser.eval(hostile);
    open(browser, hostile.as_str().unwrap());
    assert_eq!(browser.complaints(), Vec::<String>::new());
    assert_eq!(browser.eval("typeof window.stolen + document.images.length"), "undefined0");
    let kept = browser.eval("document.getElementById('text').value");
    assert!(kept.as_str().unwrap().contains("onerror"), "somebody's work stays: {kept}");
}

/// The link and the group that were chosen, though nothing else was changed.
fn the_address_keeps_what_is_looked_at(browser: &mut Browser, engine: &Path) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("two.toml");
    let link = |name: &str, ends: &str, rate: &str| {
        format!("[[link]]\nname = '{name}'\nbetween = {ends}\nrate = '{rate}'\ndelay = '5ms'\n")
    };
    let flow = |name: &str| {
        format!("[[flow]]\nname = '{name}'\nfrom = 'S'\nto = 'D'\ncongestion = 'reno'\n")
    };
    let links = link("near", "['S', 'R']", "1mbit") + &link("far", "['R', 'D']", "2mbit");
    std::fs::write(&file, format!("duration = '1s'\n{links}{}{}", flow("one"), flow("other")))
        .unwrap();
    let path = page(dir.path(), Some(&file), engine);
    let blank = dir.path().join("blank.html");
    std::fs::write(&blank, "<!doctype html>").unwrap();
    let chosen = "[playground.state.link, playground.state.group].join()";
    browser.open(&path, 1400, 900);
    wait(browser, 0);
    assert_eq!(browser.eval(chosen), "near,one");
    for (id, value, both) in [("group", "other", "near,other"), ("link", "far", "far,other")] {
        let choose = format!(
            "(s => {{ s.value = '{value}'; s.dispatchEvent(new Event('change')); }})(document.getElementById('{id}')); \
             new Promise((done) => {{ const before = location.hash; const look = () => \
             (location.hash === before ? setTimeout(look, 20) : done(location.hash)); look(); \
             setTimeout(() => done('unchanged'), 20000); }})"
        );
        let address = browser.eval(&choose);
        let address = address.as_str().unwrap();
        assert!(address.starts_with("#s="), "{id}: {address}");
        // Another page first: a new fragment alone loads nothing anew.
        browser.open(&blank, 1400, 900);
        let again = format!("{}{address}", path.display());
        browser.open(Path::new(&again), 1400, 900);
        wait(browser, 0);
        assert_eq!(browser.eval(chosen), both);
    }
}

/// A slider changes what it says and nothing beside it.
fn a_loss_keeps_its_direction(browser: &mut Browser, engine: &Path) {
    let lesson = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/teach/4-losses.toml");
    let text = std::fs::read_to_string(&lesson).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = page(dir.path(), Some(&lesson), engine);
    browser.open(&path, 1400, 900);
    wait(browser, 0);
    and_wait(browser, &slide("loss", 4));
    let expected = text.replace("probability = 0.01,", "probability = 0.001,");
    assert_ne!(expected, text);
    assert_eq!(same_as_the_command_line(browser, dir.path()), expected);
}

/// In a page of the lesson, which measures from 10 s on: the slider has nothing shorter. Where the
/// rest of the file forbids what a slider has, it goes back, and the reason is told beside it.
fn what_is_refused_changes_nothing(browser: &mut Browser) {
    and_wait(browser, &slide("duration", 0));
    assert_eq!(browser.eval("playground.state.read.variants[0].duration"), 15);
    let to_the_end = "playground.take(playground.state.text \
        .replace('duration = \"15s\"', 'duration = \"40s\"') \
        .replace('from = \"10s\"', 'from = \"1s\", to = \"40s\"'))";
    and_wait(browser, to_the_end);
    let text = browser.eval("playground.state.text");
    let told = format!(
        "{}; new Promise((done) => {{ const look = () => \
        (document.getElementById('status').classList.contains('bad') ? \
        done(document.getElementById('status').textContent) : setTimeout(look, 10)); look(); }})",
        slide("duration", 0)
    );
    let told = browser.eval(&told);
    assert!(told.as_str().unwrap().starts_with("That is not possible here: "), "{told}");
    let duration = "document.getElementById('slider-duration').getAttribute('aria-valuetext')";
    assert_eq!(browser.eval(duration), "40 s");
    assert_eq!(browser.eval("playground.state.text"), text);
    assert_eq!(browser.eval("document.getElementById('problems').children.length"), 0);
}

/// What `xcpnet run` notes about a run is told on the page, too, for as long as it is so.
fn notes_stand_with_the_numbers(browser: &mut Browser) {
    let choose = |kind: &str| {
        format!(
            "(s => {{ s.value = '{kind}'; s.dispatchEvent(new Event('change')); }})(document.getElementById('kind-0'))"
        )
    };
    let warned = "document.querySelector('.card .warn').textContent";
    assert_eq!(browser.eval(warned), "");
    and_wait(browser, &choose("drop-tail"));
    let told = browser.eval(warned);
    assert!(told.as_str().unwrap().contains("speaks XCP but crosses no XCP queue"), "{told}");
    and_wait(browser, &choose("xcp"));
    assert_eq!(browser.eval(warned), "");
}

/// A scenario all of whose names are markup.
fn hostile(browser: &mut Browser, engine: &Path) {
    let dir = tempfile::tempdir().unwrap();
    let evil = "</script><img src=x onerror=stolen=1><script>stolen=1</script>";
    let text = format!(
        "title = '{evil}'\ndescription = '{evil}'\nduration = '1s'\n[[link]]\nname = '{evil}'\n\
         between = ['{evil}', 'D']\nrate = '1mbit'\ndelay = '10ms'\n[[flow]]\nname = '{evil}'\n\
         count = 2\nfrom = '{evil}'\nto = 'D'\ncongestion = 'reno'\n[[variant]]\nname = '{evil}'\n\
         [[variant]]\nname = 'b'\n"
    );
    let file = dir.path().join("<img src=x onerror=stolen=1>.toml");
    std::fs::write(&file, &text).unwrap();
    let path = page(dir.path(), Some(&file), engine);
    browser.open(&path, 375, 800);
    wait(browser, 0);
    same_as_the_command_line(browser, dir.path());
    and_wait(browser, &slide("rate", 10));
    let text = same_as_the_command_line(browser, dir.path());
    assert!(!text.contains("'1mbit'"), "{text}");
    browser.eval("playground.take('title = \"<img src=x onerror=stolen=1>\"\\n[[<b>]]')");
    browser.eval("playground.take('<script>stolen=1</script>', { typed: true })");
    assert_eq!(browser.eval("typeof window.stolen + document.images.length"), "undefined0");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // Neither does what gets into the page against all care: the policy forbids it.
    browser.eval("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=stolen=1>')");
    browser.eval("new Promise((done) => setTimeout(done, 200))");
    assert_eq!(browser.eval("typeof window.stolen"), "undefined");
}

/// The lesson's tables in docs/teach.md, with some room.
#[test]
fn the_lesson_says_what_runs_give() {
    let lesson = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/teach");
    let dir = tempfile::tempdir().unwrap();
    // Page, variant, where in the summary, from, to.
    for (page, claims) in [
        (
            "1-delay",
            &[
                (0, "/links/bottleneck/utilisation", 0.99, 1.0),
                (0, "/links/bottleneck/queue_mean", 0.0, 1.0),
                (0, "/flows/0/rtt_mean", 0.100, 0.106),
                (1, "/links/bottleneck/utilisation", 0.99, 1.0),
                (1, "/links/bottleneck/queue_mean", 115.0, 145.0),
                (1, "/flows/0/rtt_mean", 0.240, 0.275),
            ][..],
        ),
        (
            "2-shares",
            &[
                (0, "/flows/0/goodput", 4.7e6, 4.9e6),
                (0, "/flows/1/goodput", 4.7e6, 4.9e6),
                (0, "/jain", 0.999, 1.0),
                (1, "/flows/0/goodput", 6.6e6, 7.2e6),
                (1, "/flows/1/goodput", 2.5e6, 3.1e6),
                (1, "/jain", 0.80, 0.88),
            ],
        ),
        (
            "3-capacity",
            &[
                (0, "/links/bottleneck/utilisation", 0.895, 0.905),
                (0, "/links/bottleneck/queue_mean", 0.0, 0.5),
                (1, "/links/bottleneck/utilisation", 0.985, 1.0),
                (1, "/links/bottleneck/queue_mean", 0.0, 3.0),
                (1, "/links/bottleneck/drops", 0.0, 0.0),
                (2, "/links/bottleneck/queue_mean", 130.0, 170.0),
                (2, "/links/bottleneck/drops", 100.0, 1000.0),
            ],
        ),
        (
            "4-losses",
            &[
                (0, "/links/bottleneck/utilisation", 0.99, 1.0),
                (1, "/links/bottleneck/utilisation", 0.09, 0.17),
                (2, "/links/bottleneck/utilisation", 0.10, 0.18),
            ],
        ),
        (
            "5-two-bottlenecks",
            &[
                (0, "/flows/0/goodput", 1.8e6, 2.0e6),
                (0, "/flows/1/goodput", 6.7e6, 7.1e6),
                (0, "/flows/2/goodput", 1.8e6, 2.0e6),
                (0, "/links/wide/utilisation", 0.90, 0.94),
                (1, "/flows/1/goodput", 7.2e6, 7.6e6),
                (1, "/links/wide/utilisation", 0.95, 0.99),
                (2, "/flows/0/goodput", 0.8e6, 1.4e6),
                (2, "/flows/1/goodput", 8.2e6, 9.0e6),
            ],
        ),
        (
            "6-a-liar",
            &[
                (0, "/flows/0/goodput", 2.3e6, 2.5e6),
                (1, "/flows/0/goodput", 7.1e6, 7.7e6),
                (1, "/flows/1/goodput", 0.6e6, 0.8e6),
                (2, "/flows/0/goodput", 2.3e6, 2.5e6),
                (2, "/flows/1/goodput", 2.3e6, 2.5e6),
            ],
        ),
    ] {
        let text = std::fs::read_to_string(lesson.join(format!("{page}.toml"))).unwrap();
        let runs = summaries(dir.path(), &text);
        for &(variant, place, from, to) in claims {
            let value = runs[variant].pointer(place).and_then(Value::as_f64).unwrap();
            assert!(from <= value && value <= to, "{page}, variant {variant}, {place}: {value}");
        }
    }
    let pages = std::fs::read_dir(lesson).unwrap().count();
    assert_eq!(pages, 6, "a page that no test looks at");
}

/// The hint of the exercise of ten minutes, with some room.
#[test]
fn the_exercise_has_a_setting_for_cubic() {
    let page = include_str!("../src/playground/four-flows.toml");
    let dir = tempfile::tempdir().unwrap();
    for (buffer, xcp, cubic) in
        [("1bdp", 0.955..0.97, 0.995..1.0), ("0.25bdp", 0.95..0.97, 0.86..0.89)]
    {
        let text = page.replace("\"250ms\"", "\"5ms\"").replace("\"1bdp\"", &format!("{buffer:?}"));
        let runs = summaries(dir.path(), &text);
        let used = [0, 1].map(|i| runs[i]["links"]["bottleneck"]["utilisation"].as_f64().unwrap());
        assert!(xcp.contains(&used[0]) && cubic.contains(&used[1]), "{buffer}: {used:?}");
    }
}

/// One page for all files of a report, which leads to each of them with the settings that were
/// made.
#[test]
fn a_report_leads_to_its_page() {
    let dir = tempfile::tempdir().unwrap();
    let lesson = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/teach");
    let files = ["1-delay.toml", "2-shares.toml"].map(|name| lesson.join(name));
    let run = |more: &[&str]| {
        let mut command = program();
        command.current_dir(dir.path()).arg("run").args(&files).args(["--out", "out", "--seed"]);
        let out = command.args(["3", "--set", "sample=200ms"]).args(more).output().unwrap();
        assert!(out.status.success(), "{}", told(&out));
        let read = |name: &str| std::fs::read_to_string(dir.path().join("out").join(name)).ok();
        (read("report.html").unwrap(), read("playground.html"))
    };
    let (report, page) = run(&["--no-playground"]);
    assert!(page.is_none() && !report.contains("playground.html"));
    let (report, page) = run(&[]);
    let Some(_) = engine() else {
        // A program without an engine writes the report all the same.
        assert!(page.is_none() && !report.contains("playground.html"));
        return;
    };
    for address in ["playground.html", "playground.html#f=1"] {
        assert!(report.contains(&format!("href=\"{address}\"")), "{address}");
    }
    assert_eq!(page.unwrap().matches("seed = 3").count(), 2, "the settings are in both texts");

    let Some(chromium) = browser::find() else { return };
    let mut browser = Browser::start(&chromium);
    let page = dir.path().join("out/playground.html");
    for (fragment, title) in [
        ("", "1. Delay and the queue"),
        ("#f=1", "2. Shares"),
        ("#f=7", "1. Delay and the queue"),
        ("#f=<img src=x>", "1. Delay and the queue"),
    ] {
        browser.open(Path::new(&format!("{}{fragment}", page.display())), 1400, 900);
        wait(&mut browser, 0);
        assert_eq!(browser.eval("document.title"), title, "{fragment}");
        let text = same_as_the_command_line(&mut browser, dir.path());
        assert!(text.contains("\"200ms\"") && text.contains("seed = 3"), "{text}");
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{fragment}");
        // Another page first: a new fragment alone loads nothing.
        browser.open(&dir.path().join("out/report.html"), 1400, 900);
    }
}

#[test]
fn what_cannot_be_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        program().current_dir(dir.path()).arg("playground").args(arguments).output().unwrap()
    };
    std::fs::write(dir.path().join("wrong.toml"), "duration = 3\n").unwrap();
    std::fs::write(dir.path().join("engine"), "no engine").unwrap();
    for (arguments, expected) in [
        (&["wrong.toml", "--out", "x.html"][..], "wrong.toml:1:"),
        (&["absent.toml", "--out", "x.html"], "there is no such file"),
        (&["--engine", "absent", "--out", "x.html"], "--engine absent"),
        (&["--engine", "engine", "--out", "x.html"], "make wasm"),
        (&["--out", "."], "directory"),
    ] {
        let out = run(arguments);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {}", told(&out));
        assert!(told(&out).contains(expected), "{arguments:?}: {}", told(&out));
        assert!(!dir.path().join("x.html").exists());
    }
}
