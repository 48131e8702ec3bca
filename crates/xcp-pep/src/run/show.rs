//! Answers: `pep show`'s question over a Unix socket, one JSON object; Prometheus's over HTTP.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Serialize;
use xcp_law::Preset;
use xcp_linux::namespace::Called;
use xcp_linux::urgent::UrgentCounts;
use xcp_linux::{Error, Result};

use super::set_up::Proxy;
use crate::gateway::found::Found;
use crate::gateway::look::Finding;
use crate::gateway::state::Place;
use crate::shared::Shared;
use crate::urgent;
use crate::worker::view::View;

/// What `pep show --json` prints.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// Process id of the proxy.
    pub pid: u32,
    /// The connections that it carries.
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
    /// Whether that device is there.
    pub wan_is_there: bool,
    /// What makes new connections hang at the moment.
    pub in_the_way: Vec<Finding>,
    /// Devices towards clients and servers.
    pub lan: Vec<String>,
    /// The congestion control's name.
    pub congestion: Option<String>,
    /// The long link's law: its router's if this gateway has one, and its senders'.
    pub law: Option<&'static str>,
    /// Who has a share of it.
    pub share: String,
    /// What goes first on it, where something does.
    pub urgent: Option<Urgency>,
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
    /// Connections kept open to the other gateway.
    pub trunk: Option<crate::trunk::Shown>,
    /// Openings, where clients are answered only when the server has answered.
    pub confirm: Option<Openings>,
}

/// What goes first on the long link.
#[derive(Debug, Serialize)]
pub struct Urgency {
    /// As the option says it.
    pub bound: String,
    /// What passed since the proxy is up.
    #[serde(flatten)]
    pub counts: UrgentCounts,
}

/// What became of openings since the proxy is up.
#[derive(Debug, Serialize)]
pub struct Openings {
    /// Attempts held at the moment.
    pub holding: usize,
    /// Attempts held so far.
    pub held: u64,
    /// The server has answered.
    pub confirmed: u64,
    /// It has refused: the client was reset.
    pub refused: u64,
    /// It cannot be reached: the client was told by ICMP.
    pub unreachable: u64,
    /// Attempts whose server was silent.
    pub silent: u64,
    /// Attempts that were given up.
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
    UnixListener::bind(&path).map_err(|e| at(&path, "cannot listen at", e))
}

/// What the system says of that socket.
fn at(path: &Path, doing: &str, e: std::io::Error) -> Error {
    let kind = e.kind();
    let error = Error::because(format_args!("{doing} {}", path.display()), e);
    // sun_path, unix(7).
    if kind == ErrorKind::InvalidInput {
        error.remedy("give XDG_RUNTIME_DIR a shorter path, or the proxy a shorter --name")
    } else {
        error
    }
}

/// The address for Prometheus.
pub(super) fn listen_http(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).map_err(|e| {
        let kind = e.kind();
        let error = Error::because(format_args!("--metrics: cannot listen at {address}"), e);
        if kind == std::io::ErrorKind::AddrInUse {
            error.remedy(format!(
                "another program has the port: `ss -ltnp sport = :{}` names it",
                address.port()
            ))
        } else {
            error
        }
    })
}

fn gateway(proxy: &Proxy) -> Option<Gateway> {
    let diverted = proxy.plan.diverted.as_ref()?;
    let state =
        proxy.router.as_ref().and_then(|router| router.status().ok()).map(|status| status.state);
    Some(Gateway {
        wan: diverted.wan.clone(),
        wan_is_there: proxy.wan_is_there,
        in_the_way: proxy.watch.in_the_way.clone(),
        lan: diverted.lan.clone(),
        congestion: proxy.plan.congestion.clone(),
        law: proxy.plan.law.map(Preset::name),
        share: proxy.shared.settings().share.to_string(),
        urgent: proxy.shared.settings().urgent.map(|urgent| Urgency {
            bound: urgent::write(urgent),
            counts: proxy
                .router
                .as_ref()
                .and_then(|router| router.urgent_counts().ok().flatten())
                .unwrap_or_default(),
        }),
        capacity: state.as_ref().map(|s| s.capacity_bps),
        input_traffic: state.as_ref().map(|s| s.input_traffic_bps),
        persistent_queue: state.as_ref().map(|s| s.persistent_queue_bytes),
        endpoint: proxy.endpoint.as_ref().and_then(|endpoint| endpoint.counts().ok()),
        lent: proxy
            .endpoint
            .as_ref()
            .filter(|_| proxy.beginnings.is_some())
            .and_then(|endpoint| endpoint.taken().ok()),
        trunk: proxy.shared.trunk.get().map(|pool| pool.shown(&proxy.shared.metrics)),
        confirm: diverted.hold.map(|_| openings(&proxy.shared)),
    })
}

/// The answer to `pep show`.
pub(super) fn answer(proxy: &Proxy) -> Vec<u8> {
    let answer = Answer {
        pid: std::process::id(),
        connections: proxy.crew.show(),
        gateway: gateway(proxy),
        draining: proxy.shared.draining.load(Ordering::Relaxed),
        unreached: proxy.shared.metrics.unreached.get(),
    };
    serde_json::to_vec(&answer).unwrap_or_default()
}

/// The answer to a scrape.
pub(super) fn answer_http(proxy: &Proxy, request: &[u8]) -> Vec<u8> {
    let wanted = request.starts_with(b"GET /metrics");
    let (status, body) = if wanted {
        ("200 OK", text(proxy))
    } else {
        ("404 Not Found", "there is /metrics\n".to_owned())
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: \
            {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

fn text(proxy: &Proxy) -> String {
    let mut more = String::new();
    if let Some(gateway) = gateway(proxy) {
        let mut gauge = |name: &str, help: &str, value: Option<f64>| {
            if let Some(value) = value {
                let _ = write!(more, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n");
            }
        };
        gauge(
            "xcpnet_pep_wan_capacity_bits_per_second",
            "Capacity of the long link.",
            gateway.capacity,
        );
        gauge(
            "xcpnet_pep_wan_input_bits_per_second",
            "Traffic that its router let in during the last control interval.",
            gateway.input_traffic,
        );
        gauge(
            "xcpnet_pep_wan_persistent_queue_bytes",
            "Its persistent queue.",
            gateway.persistent_queue,
        );
        gauge(
            "xcpnet_pep_in_the_way",
            "Things that make new connections hang.",
            Some(gateway.in_the_way.len() as f64),
        );
        gauge(
            "xcpnet_pep_holding",
            "Connection attempts that are held back now.",
            gateway.confirm.map(|openings| openings.holding as f64),
        );
        let trunk = gateway.trunk.as_ref();
        gauge(
            "xcpnet_pep_trunk_warm",
            "Connections of the trunk that are waiting for clients.",
            trunk.map(|trunk| trunk.warm as f64),
        );
        gauge(
            "xcpnet_pep_trunk_wanted",
            "How many should be waiting.",
            trunk.map(|trunk| trunk.wanted as f64),
        );
        gauge(
            "xcpnet_pep_trunk_answered",
            "The other gateway's connections that are waiting for its clients.",
            trunk.map(|trunk| trunk.answered as f64),
        );
        let urgent = gateway.urgent.map(|urgent| urgent.counts);
        for (name, help, value) in [
            (
                "xcpnet_pep_urgent_bytes_total",
                "Bytes that went first on the long link.",
                urgent.map(|counts| counts.bytes),
            ),
            (
                "xcpnet_pep_urgent_excess_bytes_total",
                "Bytes marked urgent that exceeded the limit and were sent with the others.",
                urgent.map(|counts| counts.excess_bytes),
            ),
        ] {
            if let Some(value) = value {
                let _ =
                    write!(more, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}\n");
            }
        }
        if let Some(counts) = gateway.endpoint {
            for (name, help, value) in [
                ("xcpnet_pep_xcp_agreed_total", "Legs whose ends both speak XCP.", counts.agreed),
                (
                    "xcpnet_pep_xcp_fallen_peer_total",
                    "Legs whose peer does not speak XCP.",
                    counts.fallen_peer,
                ),
                (
                    "xcpnet_pep_xcp_fallen_silent_total",
                    "Legs whose feedback stopped.",
                    counts.fallen_silent,
                ),
            ] {
                let _ =
                    write!(more, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}\n");
            }
        }
    }
    proxy.shared.metrics.text(proxy.shared.active.load(Ordering::Relaxed), &more)
}

/// How long a proxy may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks the proxy of a place; `name`: its name, `what`: `show`, or an order (`control.rs`).
///
/// # Errors
/// There is none, or none that can be asked: what there is instead is told. It refuses.
pub fn ask(place: &Place, name: &str, what: &str) -> Result<serde_json::Value> {
    let path = place.socket();
    let asked = || -> std::io::Result<Vec<u8>> {
        let mut stream = UnixStream::connect(&path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(format!("{what}\n").as_bytes())?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        if bytes.is_empty() { Err(ErrorKind::ConnectionReset.into()) } else { Ok(bytes) }
    };
    let bytes = asked().map_err(|e| match e.kind() {
        ErrorKind::NotFound
        | ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset
        | ErrorKind::BrokenPipe => {
            let found = Found::look(place, name);
            let error = Error::new(found.why_silent());
            if found.is_nothing() && found.others.is_empty() {
                error.remedy(format!(
                    "start one: xcpnet pep up --wan DEV --lan DEV --rate 20mbit{}",
                    Called::entered().option()
                ))
            } else {
                error
            }
        }
        // The time to wait for it is over.
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            Error::new(Found::look(place, name).why_hung(PATIENCE))
        }
        _ => at(&path, "cannot query the proxy at", e),
    })?;
    let answer: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|e| Error::because("the proxy's answer cannot be read", e))?;
    match answer["error"].as_str() {
        Some(why) => Err(Error::new(why)),
        None => Ok(answer),
    }
}
