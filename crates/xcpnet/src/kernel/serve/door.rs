//! Who may look: those who have the token, from a page of this very door. Answers in HTTP, one
//! thread for each that stays to watch.
//!
//! A request is refused
//!
//! 1. that does not name this door in `Host`: another name that leads here is a rebound one;
//! 2. whose `Origin` is another page, or whose `Sec-Fetch-Site` says so;
//! 3. without the token: the first part of the path or, for /metrics, `Authorization: Bearer`;
//! 4. that wants anything but to read.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tiny_http::{Header, Method, Request, Response, Server};
use xcp_report::strict::{Strict, strict};

use super::{Seen, metrics};
use crate::failure::Failure;

/// Pages that are open at a time.
const WATCHERS: usize = 32;

/// An open door.
pub struct Door {
    server: Server,
    at: SocketAddr,
    token: String,
    watchers: Arc<AtomicUsize>,
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
        let failed = |e: String| Failure::new(format!("--listen {listen}: cannot listen: {e}"));
        let server = Server::http(listen).map_err(|e| failed(e.to_string()))?;
        let at = server.server_addr().to_ip().ok_or_else(|| failed("no address".into()))?;
        Ok(Self { server, at, token, watchers: Arc::default() })
    }

    /// What to open in a browser.
    pub fn address(&self) -> String {
        format!("http://{}/{}/", self.at, self.token)
    }

    /// Answers until it is time to end.
    pub fn answer(&self, seen: &Arc<Seen>, ends: fn() -> bool) {
        while !ends() {
            // An error is one caller's; the door stays open for others.
            if let Ok(Some(request)) = self.server.recv_timeout(Duration::from_millis(200)) {
                self.one(request, seen);
            }
        }
    }

    fn one(&self, request: Request, seen: &Arc<Seen>) {
        let headers: Vec<(String, String)> = request
            .headers()
            .iter()
            .map(|h| (h.field.to_string().to_ascii_lowercase(), h.value.to_string()))
            .collect();
        let judged = judge(self.at, &self.token, request.method(), request.url(), &headers);
        // Who has gone away in the meantime is nobody to tell.
        let _ = match judged {
            Err((status, why)) => request.respond(answer(status, "text/plain", format!("{why}\n"))),
            Ok(Wanted::Page) => request.respond(answer(200, "text/html; charset=utf-8", page())),
            Ok(Wanted::Metrics) => request.respond(answer(
                200,
                "text/plain; version=0.0.4",
                metrics::text(&seen.reading()),
            )),
            Ok(Wanted::Events) => {
                self.events(request, seen);
                Ok(())
            }
        };
    }

    fn events(&self, request: Request, seen: &Arc<Seen>) {
        if self.watchers.fetch_add(1, Ordering::SeqCst) >= WATCHERS {
            self.watchers.fetch_sub(1, Ordering::SeqCst);
            let _ = request.respond(answer(503, "text/plain", "too many pages are open\n".into()));
            return;
        }
        let (seen, watchers) = (Arc::clone(seen), Arc::clone(&self.watchers));
        let watching = std::thread::Builder::new().name("watcher".into()).spawn(move || {
            // Ends when the page is closed: then nothing can be written to it.
            let _ = watch(request, &seen);
            watchers.fetch_sub(1, Ordering::SeqCst);
        });
        if watching.is_err() {
            self.watchers.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Sends looks as they come; the hour before them first.
fn watch(request: Request, seen: &Seen) -> std::io::Result<()> {
    let mut out = request.into_writer();
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
    method: &Method,
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
    if !matches!(method, Method::Get | Method::Head) {
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

fn answer(status: u16, kind: &str, body: String) -> Response<std::io::Cursor<Vec<u8>>> {
    let mut response = Response::from_string(body).with_status_code(status);
    for (name, value) in [
        ("Content-Type", kind),
        ("Cache-Control", "no-store"),
        ("Referrer-Policy", "no-referrer"),
        ("X-Content-Type-Options", "nosniff"),
        ("Content-Security-Policy", "frame-ancestors 'none'"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ] {
        if let Ok(header) = Header::from_bytes(name, value) {
            response.add_header(header);
        }
    }
    response
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

    fn ask(method: Method, url: &str, headers: &[(&str, &str)]) -> Result<Wanted, u16> {
        let at = "127.0.0.1:7010".parse().unwrap();
        let headers: Vec<_> = headers.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
        judge(at, TOKEN, &method, url, &headers).map_err(|(status, _)| status)
    }

    #[test]
    fn who_has_the_token_may_look() {
        let own = ("host", "127.0.0.1:7010");
        let page = format!("/{TOKEN}/");
        assert_eq!(ask(Method::Get, &page, &[own]), Ok(Wanted::Page));
        assert_eq!(ask(Method::Get, &page, &[("host", "localhost:7010")]), Ok(Wanted::Page));
        let from = [own, ("origin", "http://127.0.0.1:7010"), ("sec-fetch-site", "same-origin")];
        assert_eq!(ask(Method::Get, &format!("{page}events"), &from), Ok(Wanted::Events));
        assert_eq!(ask(Method::Get, &format!("{page}metrics?x=1"), &[own]), Ok(Wanted::Metrics));
        let bearer = ("authorization", "Bearer 0123456789abcdef");
        assert_eq!(ask(Method::Get, "/metrics", &[own, bearer]), Ok(Wanted::Metrics));
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
            assert_eq!(ask(Method::Get, url, headers), Err(status), "{url} {headers:?}");
        }
        assert_eq!(ask(Method::Post, &page, &[own]), Err(405));
        assert_eq!(ask(Method::Delete, &page, &[own]), Err(405));
    }
}
