//! `xcpnet serve` from outside: who is refused, what those get who are not, and that nothing that
//! a reading brings becomes markup.
#![cfg(target_os = "linux")]

#[path = "../../xcp-report/tests/common/browser.rs"]
#[allow(dead_code, reason = "each test program uses a part")]
mod browser;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use browser::Browser;
use serde_json::{Value, json};

/// A server that ends with this.
struct Serving {
    child: Child,
    host: String,
    token: String,
}

impl Serving {
    fn start() -> Self {
        Self::with(&[])
    }

    fn with(options: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_xcpnet"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").unwrap_or_else(|| panic!("{line:?}"));
        let (host, token) = address.trim_end_matches('/').split_once('/').unwrap();
        Self { child, host: host.into(), token: token.into() }
    }

    fn connect(&self, request: &str, headers: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        write!(stream, "{request} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n").unwrap();
        stream
    }

    /// Status line, headers and body of an answer.
    fn ask(&self, request: &str, headers: &str) -> String {
        let mut answer = String::new();
        self.connect(request, headers).read_to_string(&mut answer).unwrap();
        answer
    }

    /// Asks for something to be run, or stopped: status and what is told.
    fn post(&self, what: &str, body: &str) -> (u16, Value) {
        let head = format!("POST /{}/{what} HTTP/1.1\r\n{}", self.token, self.own());
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let (kind, length) = ("Content-Type: application/toml", body.len());
        write!(stream, "{head}{kind}\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, told) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), serde_json::from_str(told).unwrap_or(Value::Null))
    }

    /// How the work stands once nothing runs.
    fn settled(&self) -> Value {
        loop {
            let answer = self.ask(&format!("GET /{}/run", self.token), &self.own());
            let told: Value =
                serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
            if told["running"] == false {
                return told;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn own(&self) -> String {
        format!("Host: {}\r\n", self.host)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_taken_port_is_told_with_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_xcpnet"))
        .args(["serve", "--listen", &at.to_string()])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = format!(
        "error: --listen {at}: cannot listen: another program listens at port {} already; give \
         another port, or 0",
        at.port()
    );
    assert!(output.stderr.starts_with(told.as_bytes()), "{output:?}");
}

#[test]
fn strangers_are_refused() {
    let serving = Serving::start();
    let (own, page) = (serving.own(), format!("GET /{}/", serving.token));
    for (request, headers, status) in [
        ("GET /", own.clone(), 403),
        ("GET /metrics", own.clone(), 403),
        (&page, String::new(), 400),
        (&page, "Host: evil.example\r\n".to_owned(), 403),
        (&page, format!("{own}Origin: http://evil.example\r\n"), 403),
        (&format!("{page}events"), format!("{own}Sec-Fetch-Site: cross-site\r\n"), 403),
        (&page.replace("GET", "POST"), own.clone(), 405),
    ] {
        let answer = serving.ask(request, &headers);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        assert!(!answer.contains(&serving.token), "a refusal does not tell the token");
        assert!(answer.len() < 700, "nor anything else: {answer}");
    }
}

/// Whoever can reach the door, without the token: bodies that are announced and do not come, of any
/// length; callers who say nothing, or nothing that is a request. Others are answered all the same.
#[test]
fn nobody_without_the_token_shuts_the_door() {
    let serving = Serving::start();
    let own = serving.own();
    let mut silent = Vec::new();
    for length in ["1000000", "99999999999999", "-1", "18446744073709551616"] {
        let headers = format!("{own}Content-Length: {length}\r\n");
        let answer = serving.ask("POST /", &headers);
        assert!(answer.starts_with("HTTP/1.1 40"), "{length}: {answer}");
        silent.push(serving.connect("POST /", &headers));
    }
    for _ in 0..20 {
        silent.push(TcpStream::connect(&serving.host).unwrap());
    }
    let mut garbage = TcpStream::connect(&serving.host).unwrap();
    garbage.write_all(&[0xff; 4096]).unwrap();
    let mut endless = TcpStream::connect(&serving.host).unwrap();
    endless.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    // It may be closed upon before all is written.
    let _ = endless.write_all("X: y\r\n".repeat(10_000).as_bytes());
    let page = serving.ask(&format!("GET /{}/", serving.token), &own);
    assert!(page.starts_with("HTTP/1.1 200 "), "{}", &page[..page.len().min(200)]);
}

#[test]
fn those_with_the_token_get_the_page_events_and_metrics() {
    let serving = Serving::start();
    let (own, path) = (serving.own(), format!("GET /{}/", serving.token));
    let page = serving.ask(&path, &own);
    assert!(page.starts_with("HTTP/1.1 200 "), "{}", &page[..200]);
    assert!(page.contains("default-src &#39;none&#39;") && page.contains("frame-ancestors 'none'"));
    assert!(page.contains("Referrer-Policy: no-referrer"), "the address is nobody else's business");
    let bearer = format!("{own}Authorization: Bearer {}\r\n", serving.token);
    for answer in
        [serving.ask(&format!("{path}metrics"), &own), serving.ask("GET /metrics", &bearer)]
    {
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.contains("version=0.0.4"), "{answer}");
    }
    let mut events = BufReader::new(serving.connect(&format!("{path}events"), &own)).lines();
    let mut data = || {
        let line = events.find(|line| line.as_ref().unwrap().starts_with("data: "));
        serde_json::from_str::<Value>(&line.unwrap().unwrap()[6..]).unwrap()
    };
    assert!(data().as_array().is_some_and(|hour| !hour.is_empty()), "first the hour before");
    let (first, second) = (data(), data());
    assert!(second["at"].as_f64() > first["at"].as_f64(), "then look after look");
    // What cannot be seen is said, what can is there.
    for part in ["routers", "proxies"] {
        let unseen = first["unseen"].to_string().contains(part);
        assert_eq!(first[part].is_null(), unseen, "{first}");
    }
}

const SCENARIO: &str = r#"
    title = "</pre><script>stolen=1</script>"
    duration = "2s"
    link = [{ name = "l", between = ["a", "b"], rate = "1mbit", delay = "10ms" }]
    flow = [{ name = "f", from = "a", to = "b", congestion = "cubic" }]
"#;

/// Without `--lab` nothing is run. With it a scenario is, if it is right, and one at a time; what
/// is wrong is told as the command line tells it.
#[test]
fn scenarios_are_run_where_that_is_allowed() {
    let closed = Serving::start();
    assert_eq!(closed.post("run?on=sim", SCENARIO).0, 405);
    assert!(!closed.ask(&format!("GET /{}/", closed.token), &closed.own()).contains("lab-text"));

    let serving = Serving::with(&["--lab"]);
    let (status, told) = serving.post("run?on=sim", &SCENARIO.replace("delay", "dealy"));
    let said = told["text"].as_str().unwrap();
    assert_eq!(status, 422);
    assert!(said.contains("scenario.toml:4:") && said.contains("dealy"), "{said}");
    for (what, body, refused) in [
        ("run?on=sim", "\u{0}", 422),
        ("run?on=sim", "", 422),
        ("run?on=sh", SCENARIO, 404),
        ("report", SCENARIO, 405),
        ("run?on=sim", &"#".repeat(300_000), 413),
    ] {
        assert_eq!(serving.post(what, body).0, refused, "{what}");
    }
    assert_eq!(serving.settled()["number"], 0, "nothing was begun");
    let (status, told) = serving.post("run?on=sim", SCENARIO);
    assert_eq!((status, &told["number"]), (200, &json!(1)));
    let told = serving.settled();
    assert_eq!((&told["failed"], &told["report"]), (&json!(false), &json!(true)), "{told}");
    assert!(told["text"].as_str().unwrap().contains("utilisation"), "{told}");
    let report = serving.ask(&format!("GET /{}/report", serving.token), &serving.own());
    assert!(report.contains("&lt;script&gt;stolen") && !report.contains("<script>stolen"));

    let long = SCENARIO.replace("\"2s\"", "\"4000s\"").replace("1mbit", "400mbit");
    assert_eq!(serving.post("run?on=sim", &long).0, 200);
    assert_eq!(serving.post("run?on=sim", SCENARIO).0, 409, "one at a time");
    assert_eq!(serving.post("stop", "").0, 200);
    let told = serving.settled();
    assert!(told["text"].as_str().unwrap().starts_with("stopped; so far:"), "{told}");
}

#[test]
fn names_are_text() {
    let Some(chromium) = browser::find() else { return };
    let serving = Serving::with(&["--lab"]);
    let mut browser = Browser::start(&chromium);
    let address = format!("http://{}/{}/", serving.host, serving.token);
    browser.call("Page.navigate", json!({ "url": address }));
    let looked = "new Promise((done) => { const look = () => (window.serving && serving.looks ? \
        done(true) : setTimeout(look, 20)); look(); })";
    // The old page may still be there for a moment, and its promise go with it.
    while browser.eval("location.pathname.length > 10 && document.readyState") != "complete" {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(browser.eval(looked), true);
    let evil = "<img src=x onerror=stolen=1>";
    let router = json!({ "dev": evil, "qdisc": evil, "hook": evil, "capacity": 1e7, "utilisation": 0.5, "backlog": 1000 });
    let leg = json!({ "client": evil, "server": evil, "state": evil, "to_client": 1, "to_server": 2, "held": 3 });
    let proxy = json!({ "name": evil, "wan": evil, "error": evil, "connections": [leg], "connections_in_all": 1 });
    let look = json!({ "at": 1, "routers": [router], "proxies": [proxy], "endpoint": null, "unseen": [evil] });
    // All at once: the next real look shows what is there instead.
    let shown = browser.eval(&format!(
        "serving.keep({look}), serving.show({look}), [document.body.textContent, \
         document.images.length, document.querySelectorAll('.plot canvas').length]"
    ));
    let said = shown[0].as_str().unwrap();
    assert!(said.matches(evil).count() >= 8, "{said}");
    assert_eq!((shown[1].as_u64(), shown[2].as_u64()), (Some(0), Some(2)));
    let run = format!(
        "new Promise((done) => {{ document.getElementById('lab-text').value = {}; \
         document.querySelector('[data-on=sim]').click(); \
         const look = () => (document.getElementById('lab-out').hidden \
         ? setTimeout(look, 50) : done(['lab-out', 'lab-said'].map((id) => \
         document.getElementById(id).textContent))); look(); }})",
        json!(SCENARIO)
    );
    let told = browser.eval(&run);
    assert!(told[0].as_str().unwrap().contains("utilisation"), "{told}");
    assert!(told[1].as_str().unwrap().contains("</pre><script>stolen=1</script>"), "{told}");
    assert_eq!(browser.eval("typeof window.stolen"), "undefined");
}
