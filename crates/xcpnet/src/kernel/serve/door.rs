//! Who may look: those who have the token, from a page of this very door. Answers in HTTP, one
//! thread for each that stays to watch.
//!
//! A request is refused
//!
//! 1. that does not name this door in `Host`: another name that leads here is a rebound one;
//! 2. whose `Origin` is another page, or whose `Sec-Fetch-Site` says so;
//! 3. without the token: the first part of the path or, for /metrics, `Authorization: Bearer`;
//! 4. that wants anything but to read.

//!
//! Whoever can reach the door can knock, token or not: other users of this machine can. So a request
//! has a length and a time that it may take, no body is ever read, and of those who have not said
//! what they want there are only so many. (A library that waits for a body, or makes room for one as
//! long as its header says, can be ended with one line by anybody.)

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use httparse::{EMPTY_HEADER, Status};
use xcp_report::strict::{Strict, strict};

use super::{Seen, metrics};
use crate::failure::Failure;

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
}

/// Status and reason of a refusal.
type Refusal = (u16, &'static str);

impl Door {
    /// Opens it.
    pub fn open(listen: SocketAddr, token: String) -> Result<Self, Failure> {
        let failed = |e: io::Error| Failure::new(format!("--listen {listen}: cannot listen: {e}"));
        let listener = TcpListener::bind(listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let at = listener.local_addr().map_err(failed)?;
        let (callers, watchers) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Ok(Self { listener, inside: Arc::new(Inside { at, token, callers, watchers }) })
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
        let judged = match read(&mut stream)? {
            Some(request) => self.judged(&request),
            None => Err((400, "this is not a request")),
        };
        let html = "text/html; charset=utf-8";
        let text = match judged {
            Err((status, why)) => answer(status, "text/plain", &format!("{why}\n")),
            Ok(Wanted::Page) => answer(200, html, &page()),
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
        judge(self.at, &self.token, method, url, &headers)
    }
}

/// A request without its body; `None` for what is none, or too long.
fn read(stream: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let until = Instant::now() + PATIENCE;
    let mut request = Vec::new();
    let mut part = [0; 2048];
    while request.len() < REQUEST {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part)? {
            0 => return Ok(None),
            n => request.extend_from_slice(&part[..n]),
        }
        let mut headers = [EMPTY_HEADER; HEADERS];
        match httparse::Request::new(&mut headers).parse(&request) {
            Ok(Status::Complete(_)) => return Ok(Some(request)),
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

/// Lets in or refuses.
fn judge(
    at: SocketAddr,
    token: &str,
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
        return Err((403, "this is not the Host you are looking for"));
    }
    let origin = format!("http://{host}");
    let elsewhere = header("origin").any(|from| !from.eq_ignore_ascii_case(&origin))
        || header("sec-fetch-site").any(|site| site != "same-origin" && site != "none");
    if elsewhere {
        return Err((403, "another page may not ask"));
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
    if method != "GET" {
        return Err((405, "there is nothing to change here"));
    }
    match wanted {
        "" => Ok(Wanted::Page),
        "events" => Ok(Wanted::Events),
        "metrics" => Ok(Wanted::Metrics),
        _ => Err((404, "there is nothing of this name")),
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

/// The page; what it shows comes as events.
pub fn page() -> String {
    strict(&Strict {
        title: "xcpnet: this machine",
        version: env!("CARGO_PKG_VERSION"),
        scripts_may: "",
        policy: "connect-src 'self';",
        style: include_str!("page.css"),
        body: include_str!("page.html"),
        script: include_str!("page.js"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn ask(method: &str, url: &str, headers: &[(&str, &str)]) -> Result<Wanted, u16> {
        let at = "127.0.0.1:7010".parse().unwrap();
        let headers: Vec<_> = headers.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
        judge(at, TOKEN, method, url, &headers).map_err(|(status, _)| status)
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
}
