//! Who may look: those who have the token, from a page of this very door. Answers in HTTP, one
//! thread for each that stays to watch.
//!
//! A request is refused
//!
//! 1. that does not name this door in `Host`: another name that leads here is a rebound one;
//! 2. whose `Origin` is another page, or whose `Sec-Fetch-Site` says so;
//! 3. without the token: the first part of the path or, for /metrics, `Authorization: Bearer`;
//! 4. that wants anything but to read; with `--lab`, to read and to run or stop a scenario
//!    ([`super::work`]), whose text no form of another page could send.
//!
//! Whoever can reach the door can knock, token or not: other users of this machine can. So a
//! request has a length and a time that it may take, a body is read only of those who were let in
//! with one, and of those who have not said what they want there are only so many. (A library that
//! waits for a body, or makes room for one as long as its header says, can be ended with one line
//! by anybody.)

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use httparse::{EMPTY_HEADER, Status};
use serde_json::{Value, json};
use xcp_report::escape;
use xcp_report::files::reason;
use xcp_report::strict::{Strict, strict};

use super::work::{Refused, TEXT, Work};
use super::{Seen, metrics};
use crate::cli::Backend;
use crate::failure::Failure;
use crate::playground::EXAMPLE;

/// Pages that are open at a time, and callers who have not yet said what they want.
const WATCHERS: usize = 32;
const CALLERS: usize = 64;
/// A request's length, headers, and time at the most.
const REQUEST: usize = 16 << 10;
const HEADERS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(5);
/// Between looks for somebody new.
const PAUSE: Duration = Duration::from_millis(50);

/// An open door.
pub struct Door {
    listener: TcpListener,
    inside: Arc<Inside>,
}

/// What each caller's thread needs.
struct Inside {
    at: SocketAddr,
    token: String,
    /// What may be run from the page; `None`: nothing.
    work: Option<Arc<Work>>,
    callers: AtomicUsize,
    watchers: AtomicUsize,
}

/// One of those of whom there are only so many.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn among(count: &'a AtomicUsize, most: usize) -> Option<Self> {
        let place = Self(count);
        (count.fetch_add(1, Ordering::SeqCst) < most).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What somebody wants who may have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Page,
    Events,
    Metrics,
    /// How the work stands, and its report.
    Work,
    Report,
    /// A text of so many bytes to be run.
    Run(Backend, usize),
    Stop,
}

/// A request up to its body, and what came of the body with it.
struct Request {
    head: Vec<u8>,
    body: Vec<u8>,
}

/// Status and reason of a refusal.
type Refusal = (u16, &'static str);

impl Door {
    /// Opens it.
    pub fn open(
        listen: SocketAddr,
        token: String,
        work: Option<Arc<Work>>,
    ) -> Result<Self, Failure> {
        let failed = |e: io::Error| {
            let why = match e.kind() {
                io::ErrorKind::AddrInUse => format!(
                    "another program listens at port {} already; give another port, or 0 for any \
                     that is free",
                    listen.port()
                ),
                io::ErrorKind::AddrNotAvailable => {
                    "this machine has no such address; `ip address` lists those that it has".into()
                }
                _ => reason(&e),
            };
            Failure::new(format!("--listen {listen}: cannot listen: {why}"))
        };
        let listener = TcpListener::bind(listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let at = listener.local_addr().map_err(failed)?;
        let (callers, watchers) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Ok(Self { listener, inside: Arc::new(Inside { at, token, work, callers, watchers }) })
    }

    /// What to open in a browser.
    pub fn address(&self) -> String {
        format!("http://{}/{}/", self.inside.at, self.inside.token)
    }

    /// Answers until it is time to end.
    pub fn answer(&self, seen: &Arc<Seen>, ends: fn() -> bool) {
        while !ends() {
            // An error is one caller's, or passes; the door stays open for others.
            let Ok((stream, _)) = self.listener.accept() else {
                std::thread::sleep(PAUSE);
                continue;
            };
            let (inside, seen) = (Arc::clone(&self.inside), Arc::clone(seen));
            // Without a thread the caller is closed upon. Who has gone away is nobody to tell.
            let _ = std::thread::Builder::new()
                .name("caller".into())
                .spawn(move || drop(inside.one(stream, &seen)));
        }
    }
}

impl Inside {
    fn one(&self, mut stream: TcpStream, seen: &Seen) -> io::Result<()> {
        let place = Place::among(&self.callers, CALLERS);
        if place.is_none() {
            return Ok(());
        }
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let until = Instant::now() + PATIENCE;
        let mut body = Vec::new();
        let judged = match read(&mut stream, until)? {
            Some(request) => {
                body = request.body;
                self.judged(&request.head)
            }
            None => Err((400, "this is not a request")),
        };
        let (html, object) = ("text/html; charset=utf-8", "application/json");
        let told = |told: Value| answer(200, object, &told.to_string());
        let text = match judged {
            Err((status, why)) => answer(status, "text/plain", &format!("{why}\n")),
            Ok(Wanted::Page) => answer(200, html, &page(self.work.is_some())),
            Ok(Wanted::Work) => told(self.work.as_ref().map_or(Value::Null, |work| work.told())),
            Ok(Wanted::Stop) => told(self.work.as_ref().map_or(Value::Null, |work| work.stop())),
            Ok(Wanted::Report) => match self.work.as_ref().and_then(|work| work.report()) {
                Some(report) => answer(200, html, &report),
                None => answer(404, "text/plain", "there is no report\n"),
            },
            Ok(Wanted::Run(on, length)) => {
                if !read_body(&mut stream, until, length, &mut body)? {
                    return Ok(());
                }
                match self.run(&body, on) {
                    Ok(value) => told(value),
                    Err((status, why)) => {
                        answer(status, object, &json!({ "text": why }).to_string())
                    }
                }
            }
            Ok(Wanted::Metrics) => {
                answer(200, "text/plain; version=0.0.4", &metrics::text(&seen.reading()))
            }
            Ok(Wanted::Events) => match Place::among(&self.watchers, WATCHERS) {
                Some(_watcher) => {
                    drop(place);
                    return watch(&mut stream, seen);
                }
                None => answer(503, "text/plain", "too many pages are open\n"),
            },
        };
        stream.write_all(text.as_bytes())?;
        stream.shutdown(Shutdown::Write)?;
        // What it still sends is not wanted, but closing upon it would take the answer back.
        let _ = stream.read(&mut [0; REQUEST]);
        Ok(())
    }

    fn run(&self, text: &[u8], on: Backend) -> Result<Value, (u16, String)> {
        let Some(work) = &self.work else { return Err((405, NOTHING.to_owned())) };
        let text =
            str::from_utf8(text).map_err(|_| (422, "the scenario is not UTF-8 text".to_owned()))?;
        work.begin(text, on).map_err(|why| match why {
            Refused::Busy => (409, "a scenario is running; stop it, or wait".to_owned()),
            Refused::Wrong(text) => (422, text),
        })
    }

    fn judged(&self, request: &[u8]) -> Result<Wanted, Refusal> {
        let mut headers = [EMPTY_HEADER; HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        let whole = parsed.parse(request).is_ok_and(|status| status.is_complete());
        let (true, Some(method), Some(url)) = (whole, parsed.method, parsed.path) else {
            return Err((400, "this is not a request"));
        };
        let headers: Vec<(String, String)> = parsed
            .headers
            .iter()
            .map(|h| (h.name.to_ascii_lowercase(), String::from_utf8_lossy(h.value).into_owned()))
            .collect();
        judge(self.at, &self.token, self.work.is_some(), method, url, &headers)
    }
}

/// Some more bytes; `false` where there are none in time.
fn more(stream: &mut TcpStream, until: Instant, into: &mut Vec<u8>) -> io::Result<bool> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Ok(false);
    }
    stream.set_read_timeout(Some(left))?;
    let mut part = [0; 2048];
    let n = stream.read(&mut part)?;
    into.extend_from_slice(&part[..n]);
    Ok(n > 0)
}

/// The rest of a body; `false` where it does not come.
fn read_body(
    stream: &mut TcpStream,
    until: Instant,
    length: usize,
    body: &mut Vec<u8>,
) -> io::Result<bool> {
    while body.len() < length {
        if !more(stream, until, body)? {
            return Ok(false);
        }
    }
    body.truncate(length);
    Ok(true)
}

/// A request; `None` for what is none, or too long. Its body is left where it is, but for what came
/// with the rest.
fn read(stream: &mut TcpStream, until: Instant) -> io::Result<Option<Request>> {
    let mut request = Vec::new();
    while request.len() < REQUEST {
        if !more(stream, until, &mut request)? {
            return Ok(None);
        }
        let mut headers = [EMPTY_HEADER; HEADERS];
        match httparse::Request::new(&mut headers).parse(&request) {
            Ok(Status::Complete(head)) => {
                let body = request.split_off(head);
                return Ok(Some(Request { head: request, body }));
            }
            Ok(Status::Partial) => {}
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

/// Sends looks as they come; the hour before them first.
fn watch(out: &mut TcpStream, seen: &Seen) -> io::Result<()> {
    write!(
        out,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\n\
         Connection: close\r\n\r\n"
    )?;
    let (number, hour) = seen.hour();
    write!(out, "event: hour\ndata: {hour}\n\n")?;
    out.flush()?;
    // The last look again, for the tables.
    let mut number = number.saturating_sub(1);
    loop {
        match seen.after(number) {
            Some((next, text)) => {
                number = next;
                write!(out, "data: {text}\n\n")?;
            }
            None => write!(out, ": still here\n\n")?,
        }
        out.flush()?;
    }
}

/// What those hear who want to change something.
const NOTHING: &str = "nothing can be changed here";

/// Lets in or refuses. `lab`: scenarios may be run.
fn judge(
    at: SocketAddr,
    token: &str,
    lab: bool,
    method: &str,
    url: &str,
    headers: &[(String, String)],
) -> Result<Wanted, Refusal> {
    let header =
        |name: &'static str| headers.iter().filter(move |(n, _)| n == name).map(|(_, v)| &v[..]);
    let mut hosts = vec![at.to_string()];
    if at.ip().is_loopback() {
        hosts.push(format!("localhost:{}", at.port()));
    }
    let host: Vec<&str> = header("host").collect();
    let [host] = host[..] else { return Err((400, "exactly one Host is needed")) };
    // What listens everywhere is known by many names; by numbers only, which cannot be rebound.
    let own = hosts.iter().any(|own| own.eq_ignore_ascii_case(host))
        || at.ip().is_unspecified()
            && host.parse::<SocketAddr>().is_ok_and(|named| named.port() == at.port());
    if !own {
        return Err((403, "the request's Host is not this page's address"));
    }
    let origin = format!("http://{host}");
    let elsewhere = header("origin").any(|from| !from.eq_ignore_ascii_case(&origin))
        || header("sec-fetch-site").any(|site| site != "same-origin" && site != "none");
    if elsewhere {
        return Err((403, "other pages may not send requests"));
    }
    let path = url.split('?').next().unwrap_or_default();
    let (first, rest) =
        path.strip_prefix('/').and_then(|p| p.split_once('/')).unwrap_or((path, ""));
    let bearer = header("authorization").any(|value| {
        value.strip_prefix("Bearer ").is_some_and(|given| same(given.as_bytes(), token.as_bytes()))
    });
    let wanted = if same(first.as_bytes(), token.as_bytes()) {
        rest
    } else if bearer && path == "/metrics" {
        "metrics"
    } else {
        return Err((403, "the token is missing: open the address that `xcpnet serve` printed"));
    };
    match (method, wanted) {
        ("GET", "") => Ok(Wanted::Page),
        ("GET", "events") => Ok(Wanted::Events),
        ("GET", "metrics") => Ok(Wanted::Metrics),
        ("GET", "run") if lab => Ok(Wanted::Work),
        ("GET", "report") if lab => Ok(Wanted::Report),
        ("GET", _) => Err((404, "there is nothing with this name")),
        // The token in the path, not a header that a metrics reader has, lets somebody change
        // things.
        ("POST", "stop") if lab => Ok(Wanted::Stop),
        ("POST", "run") if lab => {
            let on = match url.split_once('?').map_or("", |(_, query)| query) {
                "on=sim" => Backend::Sim,
                "on=linux" => Backend::Linux,
                _ => return Err((404, "write on=sim or on=linux")),
            };
            // What forms can send is of other types; of this one a browser asks first.
            if header("content-type").ne(["application/toml"]) {
                return Err((415, "a scenario must be sent as application/toml"));
            }
            let lengths: Vec<&str> = header("content-length").collect();
            match lengths[..] {
                [length] => match length.parse() {
                    Ok(length) if length <= TEXT => Ok(Wanted::Run(on, length)),
                    _ => Err((413, "a scenario may have at most 256 KiB")),
                },
                _ => Err((411, "exactly one Content-Length is needed")),
            }
        }
        _ => Err((405, NOTHING)),
    }
}

/// Compares without telling by its time how far they agree.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

/// An answer in HTTP, after which the connection ends.
fn answer(status: u16, kind: &str, body: &str) -> String {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Content",
        _ => "Service Unavailable",
    };
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\
         X-Content-Type-Options: nosniff\r\n\
         Content-Security-Policy: frame-ancestors 'none'\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// The page; what it shows comes as events. `lab`: scenarios may be run from it.
fn page(lab: bool) -> String {
    let section = include_str!("lab.html").replace("{scenario}", &escape(EXAMPLE));
    let changes = if lab {
        "Nothing on this page changes routers, proxies or endpoint."
    } else {
        "Nothing on this page changes anything."
    };
    let body = include_str!("page.html")
        .replace("{changes}", changes)
        .replace("{lab}", if lab { &section } else { "" });
    strict(&Strict {
        title: "xcpnet: this machine",
        version: env!("CARGO_PKG_VERSION"),
        scripts_may: "",
        policy: "connect-src 'self';",
        style: include_str!("page.css"),
        body: &body,
        script: if lab {
            concat!(include_str!("page.js"), include_str!("lab.js"))
        } else {
            include_str!("page.js")
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn ask(method: &str, url: &str, headers: &[(&str, &str)]) -> Result<Wanted, u16> {
        asked(false, method, url, headers)
    }

    fn asked(lab: bool, method: &str, url: &str, headers: &[(&str, &str)]) -> Result<Wanted, u16> {
        let at = "127.0.0.1:7010".parse().unwrap();
        let headers: Vec<_> = headers.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
        judge(at, TOKEN, lab, method, url, &headers).map_err(|(status, _)| status)
    }

    #[test]
    fn who_has_the_token_may_look() {
        let own = ("host", "127.0.0.1:7010");
        let page = format!("/{TOKEN}/");
        assert_eq!(ask("GET", &page, &[own]), Ok(Wanted::Page));
        assert_eq!(ask("GET", &page, &[("host", "localhost:7010")]), Ok(Wanted::Page));
        let from = [own, ("origin", "http://127.0.0.1:7010"), ("sec-fetch-site", "same-origin")];
        assert_eq!(ask("GET", &format!("{page}events"), &from), Ok(Wanted::Events));
        assert_eq!(ask("GET", &format!("{page}metrics?x=1"), &[own]), Ok(Wanted::Metrics));
        let bearer = ("authorization", "Bearer 0123456789abcdef");
        assert_eq!(ask("GET", "/metrics", &[own, bearer]), Ok(Wanted::Metrics));
    }

    #[test]
    fn all_others_are_refused() {
        let own = ("host", "127.0.0.1:7010");
        let page = format!("/{TOKEN}/");
        for (url, headers, status) in [
            ("/", &[own][..], 403),
            ("/metrics", &[own], 403),
            ("/0123456789abcdee/", &[own], 403),
            ("/0123456789abcdef", &[own], 403),
            ("//", &[own], 403),
            ("", &[own], 403),
            (&page, &[], 400),
            (&page, &[own, own], 400),
            (&page, &[("host", "evil.example:7010")], 403),
            (&page, &[("host", "127.0.0.1")], 403),
            (&page, &[("host", "localhost:7010.evil.example")], 403),
            (&page, &[own, ("origin", "http://evil.example")], 403),
            (&page, &[own, ("origin", "null")], 403),
            (&page, &[own, ("origin", "https://127.0.0.1:7010")], 403),
            (&page, &[own, ("sec-fetch-site", "cross-site")], 403),
            (&page, &[own, ("sec-fetch-site", "same-site")], 403),
            ("/", &[own, ("authorization", "Bearer 0123456789abcdef")], 403),
            (&format!("{page}other"), &[own], 404),
        ] {
            assert_eq!(ask("GET", url, headers), Err(status), "{url} {headers:?}");
        }
        assert_eq!(ask("POST", &page, &[own]), Err(405));
        assert_eq!(ask("DELETE", &page, &[own]), Err(405));
    }

    #[test]
    fn only_a_lab_runs_anything_and_only_what_a_form_could_not_send() {
        let own = ("host", "127.0.0.1:7010");
        let (toml, length) = (("content-type", "application/toml"), ("content-length", "70"));
        let url = |end: &str| format!("/{TOKEN}/{end}");
        let all = [own, toml, length];
        for (end, status) in [("run?on=sim", 405), ("stop", 405)] {
            assert_eq!(ask("POST", &url(end), &all), Err(status));
        }
        assert_eq!(
            (ask("GET", &url("run"), &[own]), ask("GET", &url("report"), &[own])),
            (Err(404), Err(404))
        );
        let lab = |method: &str, url: &str, headers: &[_]| asked(true, method, url, headers);
        assert_eq!(lab("POST", &url("run?on=sim"), &all), Ok(Wanted::Run(Backend::Sim, 70)));
        assert_eq!(lab("POST", &url("run?on=linux"), &all), Ok(Wanted::Run(Backend::Linux, 70)));
        assert_eq!(lab("POST", &url("stop"), &[own]), Ok(Wanted::Stop));
        let bearer = ("authorization", "Bearer 0123456789abcdef");
        for (url, headers, status) in [
            ("/run?on=sim".to_owned(), &[own, toml, length, bearer][..], 403),
            (url("run?on=sim"), &[own, toml, length, ("origin", "http://evil.example")], 403),
            (url("run?on=sim"), &[own, length], 415),
            (url("run?on=sim"), &[own, length, ("content-type", "text/plain")], 415),
            (url("run?on=sim"), &[own, toml], 411),
            (url("run?on=sim"), &[own, toml, length, length], 411),
            (url("run?on=sim"), &[own, toml, ("content-length", "262145")], 413),
            (url("run?on=sim"), &[own, toml, ("content-length", "-1")], 413),
            (url("run?on=sh"), &all, 404),
            (url("run"), &all, 404),
            (url(""), &all, 405),
        ] {
            assert_eq!(lab("POST", &url, headers), Err(status), "{url} {headers:?}");
        }
        assert_eq!(lab("PUT", &url("run?on=sim"), &all), Err(405));
    }
}
