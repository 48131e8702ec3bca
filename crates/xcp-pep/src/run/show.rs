//! Answers: `pep show`'s question over a Unix socket, one JSON object; Prometheus's over HTTP.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde::Serialize;
use xcp_linux::{Error, Result};

use super::set_up::Proxy;
use crate::gateway::found::Found;
use crate::gateway::state::Place;
use crate::shared::Shared;
use crate::worker::view::View;

/// Nobody keeps the thread that answers for longer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of a request to Prometheus's port that are looked at.
const LONGEST_REQUEST: usize = 16 << 10;

/// What `pep show --json` prints.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// The proxy's process.
    pub pid: u32,
    /// Connections.
    pub connections: Vec<View>,
    /// The gateway, if it is one.
    pub gateway: Option<Gateway>,
    /// Whether it takes no more connections.
    pub draining: bool,
    /// Connections whose server could not be reached, since it is up.
    pub unreached: u64,
}

/// What is told of a gateway.
#[derive(Debug, Serialize)]
pub struct Gateway {
    /// Device towards the long link.
    pub wan: String,
    /// Devices towards clients and servers.
    pub lan: Vec<String>,
    /// The congestion control's name.
    pub congestion: Option<String>,
    /// The router's capacity, bit/s.
    pub capacity: Option<f64>,
    /// What it lets in, bit/s.
    pub input_traffic: Option<f64>,
    /// Bytes of its queue that do not go away.
    pub persistent_queue: Option<f64>,
    /// Connections whose ends both speak XCP, and those that fell back, since it is up.
    pub endpoint: Option<xcp_linux::endpoint::EndpointCounts>,
    /// Packets lent to connections that began, since it is up.
    pub lent: Option<xcp_linux::endpoint::Start>,
    /// Openings, where clients are answered only when the server has answered.
    pub confirm: Option<Openings>,
}

/// What became of openings since the proxy is up.
#[derive(Debug, Serialize)]
pub struct Openings {
    /// Held now.
    pub holding: usize,
    /// Held so far.
    pub held: u64,
    /// The server has answered.
    pub confirmed: u64,
    /// It has refused: the client was reset.
    pub refused: u64,
    /// It cannot be reached: the client was told by ICMP.
    pub unreachable: u64,
    /// It was silent.
    pub silent: u64,
    /// Given up.
    pub given_up: u64,
}

fn openings(shared: &Shared) -> Openings {
    let metrics = &shared.metrics;
    Openings {
        holding: shared.confirmed.holding.load(Ordering::Relaxed),
        held: metrics.held.get(),
        confirmed: metrics.confirmed.get(),
        refused: metrics.refused.get(),
        unreachable: metrics.unreachable.get(),
        silent: metrics.silent.get(),
        given_up: metrics.given_up.get(),
    }
}

/// The socket for questions.
pub(super) fn listen(place: &Place) -> Result<UnixListener> {
    let path = place.socket();
    let _ = std::fs::remove_file(&path);
    UnixListener::bind(&path).map_err(|e| Error::because(format_args!("cannot listen at {}", path.display()), &e))
}

/// The address for Prometheus.
pub(super) fn listen_http(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).map_err(|e| {
        let error = Error::because(format_args!("--metrics: cannot listen at {address}"), &e);
        if e.kind() == std::io::ErrorKind::AddrInUse {
            error.remedy(format!("another program has the port: `ss -ltnp sport = :{}` names it", address.port()))
        } else {
            error
        }
    })
}

fn gateway(proxy: &Proxy) -> Option<Gateway> {
    let diverted = proxy.plan.diverted.as_ref()?;
    let state = proxy.router.as_ref().and_then(|router| router.status().ok()).map(|status| status.state);
    Some(Gateway {
        wan: diverted.wan.clone(),
        lan: diverted.lan.clone(),
        congestion: proxy.plan.congestion.clone(),
        capacity: state.as_ref().map(|s| s.capacity_bps),
        input_traffic: state.as_ref().map(|s| s.input_traffic_bps),
        persistent_queue: state.as_ref().map(|s| s.persistent_queue_bytes),
        endpoint: proxy.endpoint.as_ref().and_then(|endpoint| endpoint.counts().ok()),
        lent: proxy.endpoint.as_ref().filter(|_| proxy.beginnings.is_some()).and_then(|endpoint| endpoint.taken().ok()),
        confirm: diverted.hold.map(|_| openings(&proxy.shared)),
    })
}

/// Answers one question.
pub(super) fn answer(proxy: &Proxy) {
    let Ok((mut stream, _)) = proxy.show.accept() else { return };
    let answer = Answer {
        pid: std::process::id(),
        connections: proxy.crew.show(),
        gateway: gateway(proxy),
        draining: proxy.shared.draining.load(Ordering::Relaxed),
        unreached: proxy.shared.metrics.unreached.get(),
    };
    let _ = stream.set_write_timeout(Some(PATIENCE));
    if let Ok(text) = serde_json::to_vec(&answer) {
        let _ = stream.write_all(&text);
    }
}

/// A request to the end of its headers, if that comes soon and they are not too long: closing a socket with bytes unread would reset it, and take the
/// answer with it.
fn read_request(stream: &mut impl std::io::Read) -> Vec<u8> {
    let mut request = Vec::new();
    let mut some = [0; 1024];
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end && request.len() < LONGEST_REQUEST && !request.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut some) {
            Ok(read @ 1..) => request.extend_from_slice(&some[..read]),
            _ => break,
        }
    }
    request
}

/// Answers one scrape.
pub(super) fn answer_http(proxy: &Proxy) {
    let Some((mut stream, _)) = proxy.metrics.as_ref().and_then(|listener| listener.accept().ok()) else { return };
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let _ = stream.set_write_timeout(Some(PATIENCE));
    let request = read_request(&mut stream);
    let wanted = request.starts_with(b"GET /metrics");
    let (status, body) = if wanted { ("200 OK", text(proxy)) } else { ("404 Not Found", "there is /metrics\n".to_owned()) };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}

fn text(proxy: &Proxy) -> String {
    let mut more = String::new();
    if let Some(gateway) = gateway(proxy) {
        let mut gauge = |name: &str, help: &str, value: Option<f64>| {
            if let Some(value) = value {
                let _ = write!(more, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n");
            }
        };
        gauge("xcpnet_pep_wan_capacity_bits_per_second", "Capacity of the long link.", gateway.capacity);
        gauge("xcpnet_pep_wan_input_bits_per_second", "What its router let in in the last control interval.", gateway.input_traffic);
        gauge("xcpnet_pep_wan_persistent_queue_bytes", "Its queue that does not go away.", gateway.persistent_queue);
        gauge("xcpnet_pep_holding", "Openings held back now.", gateway.confirm.map(|openings| openings.holding as f64));
        if let Some(counts) = gateway.endpoint {
            for (name, help, value) in [
                ("xcpnet_pep_xcp_agreed_total", "Legs whose ends both speak XCP.", counts.agreed),
                ("xcpnet_pep_xcp_fallen_peer_total", "Legs whose peer does not.", counts.fallen_peer),
                ("xcpnet_pep_xcp_fallen_silent_total", "Legs whose feedback stopped.", counts.fallen_silent),
            ] {
                let _ = write!(more, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}\n");
            }
        }
    }
    proxy.shared.metrics.text(proxy.shared.active.load(Ordering::Relaxed), &more)
}

/// Asks the proxy of a place; `name`: its name.
///
/// # Errors
/// There is none, or none that can be asked: what there is instead is told.
pub fn ask(place: &Place, name: &str) -> Result<serde_json::Value> {
    let path = place.socket();
    let asked = || -> std::io::Result<Vec<u8>> {
        let mut stream = UnixStream::connect(&path)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = asked().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => {
            let found = Found::look(place, name);
            let error = Error::new(found.why_silent());
            if found.is_nothing() && found.others.is_empty() {
                error.remedy("start one: xcpnet pep up --wan DEV --lan DEV --rate 20mbit")
            } else {
                error
            }
        }
        _ => Error::because(format_args!("cannot ask the proxy at {}", path.display()), &e),
    })?;
    serde_json::from_slice(&bytes).map_err(|e| Error::because("the proxy's answer cannot be read", &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request that comes a byte at a time is read to the end of its headers and no further; an endless one is not read for ever.
    #[test]
    fn requests_are_read_to_the_end_of_their_headers() {
        struct Bytes<'a>(&'a [u8]);
        impl std::io::Read for Bytes<'_> {
            fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
                let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
                to[0] = *first;
                self.0 = rest;
                Ok(1)
            }
        }
        let head = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
        let mut source = Bytes(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\nmore");
        assert_eq!(read_request(&mut source), head);
        assert_eq!(source.0, b"more");
        assert_eq!(read_request(&mut &[b'x'; 1 << 20][..]).len(), LONGEST_REQUEST);
        assert_eq!(read_request(&mut Bytes(b"GET")), b"GET");
    }
}
