//! Just enough of a headless Chromium: the DevTools protocol over a pair of named pipes, so that no
//! port and no WebSocket is needed.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// A running browser with one page.
pub struct Browser {
    child: Child,
    _home: tempfile::TempDir,
    requests: File,
    answers: BufReader<File>,
    session: String,
    next: u64,
    /// Every event received so far.
    pub events: Vec<Value>,
}

/// The browser's program, if one is installed; says aloud when not.
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
    let found = std::env::split_paths(&path)
        .flat_map(|dir| names.map(|name| dir.join(name)))
        .find(|p| p.is_file());
    if found.is_none() {
        xcp_skip::skipped!(
            "browser",
            "no Chromium found on PATH, so the report is not looked at in a browser; \
                install it with `apt-get install chromium`"
        );
    }
    found
}

impl Browser {
    /// Starts a browser.
    pub fn start(program: &Path) -> Self {
        let home = tempfile::tempdir().unwrap();
        let (to, from) = (home.path().join("to"), home.path().join("from"));
        assert!(Command::new("mkfifo").arg(&to).arg(&from).status().unwrap().success());
        // The shell opens the pipes as the descriptors 3 and 4 that --remote-debugging-pipe uses.
        let child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<\"$TO\" 4>\"$FROM\""])
            .arg(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
            ])
            .args([
                "--disable-component-update",
                "--disable-sync",
                "--hide-scrollbars",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", home.path().join("profile").display()))
            .arg("about:blank")
            .env("TO", &to)
            .env("FROM", &from)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let requests = OpenOptions::new().write(true).open(&to).unwrap();
        let answers = BufReader::new(File::open(&from).unwrap());
        let mut browser = Self {
            child,
            _home: home,
            requests,
            answers,
            session: String::new(),
            next: 0,
            events: Vec::new(),
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = browser.call(
            "Target.attachToTarget",
            json!({ "targetId": target["targetId"], "flatten": true }),
        );
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    fn receive(&mut self) -> Value {
        let mut text = Vec::new();
        self.answers.read_until(0, &mut text).unwrap();
        assert_eq!(text.pop(), Some(0), "the browser has gone");
        serde_json::from_slice(&text).unwrap()
    }

    /// Calls a method and waits for its answer.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut request = json!({ "id": self.next, "method": method, "params": params });
        if !self.session.is_empty() {
            request["sessionId"] = json!(self.session);
        }
        self.requests.write_all(format!("{request}\0").as_bytes()).unwrap();
        loop {
            let mut answer = self.receive();
            if answer["id"] == self.next {
                assert!(answer.get("error").is_none(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    /// Opens a file with a window of the given size and waits until it is loaded and drawn.
    pub fn open(&mut self, file: &Path, width: u32, height: u32) {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 }),
        );
        self.loading(|browser| {
            browser.call("Page.navigate", json!({ "url": format!("file://{}", file.display()) }));
        });
    }

    /// Does something that has a page loaded, and waits until it is loaded and drawn. What is
    /// evaluated in between meets a page that is going.
    pub fn loading(&mut self, something: impl FnOnce(&mut Self)) {
        self.events.clear();
        something(self);
        while !self.events.iter().any(|e| e["method"] == "Page.loadEventFired") {
            let event = self.receive();
            self.events.push(event);
        }
        self.eval("new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(0))))");
    }

    /// The value of a JavaScript expression, promises awaited.
    pub fn eval(&mut self, expression: &str) -> Value {
        let mut answer = self.call(
            "Runtime.evaluate",
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true }),
        );
        assert!(
            answer.get("exceptionDetails").is_none(),
            "{expression}: {}",
            answer["exceptionDetails"]
        );
        answer["result"]["value"].take()
    }

    /// Requests that would leave the machine, errors and warnings in the console, exceptions:
    /// everything a report must not cause.
    pub fn complaints(&self) -> Vec<String> {
        let bad = |e: &&Value| match e["method"].as_str().unwrap_or_default() {
            "Network.requestWillBeSent" => {
                let url = e["params"]["request"]["url"].as_str().unwrap_or_default();
                ["file:", "data:", "blob:"].iter().all(|own| !url.starts_with(own))
            }
            "Runtime.exceptionThrown" | "Log.entryAdded" | "Runtime.consoleAPICalled" => true,
            _ => false,
        };
        self.events.iter().filter(bad).map(Value::to_string).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Closing the pipe ends the browser; killing makes sure of it.
        let _ = self.requests.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
