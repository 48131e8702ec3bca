//! What the user says: on the command line, in a file (TOML, the same names), or both; the command line wins. SIGHUP reads the file again.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use xcp_linux::{Error, Result};
use xcp_scenario::typed;

use crate::settings::Settings;
use crate::socket::Leg;

/// Round-trip time that buffers are made for where none is given: a geostationary satellite's.
const DEFAULT_RTT_NS: u64 = 600_000_000;
/// Window where no rate is given.
const DEFAULT_WINDOW: u64 = 4 << 20;

/// As read; what is absent has its default.
#[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Options {
    /// Device towards the long link; diverts connections that cross it.
    pub wan: Option<String>,
    /// Devices towards clients and servers.
    pub lan: Vec<String>,
    /// The long link's rate in this direction.
    pub rate: Option<String>,
    /// Its round-trip time, for buffers.
    pub rtt: Option<String>,
    /// The router's law.
    pub law: Option<String>,
    /// Networks, addresses and ports to leave alone: `10.0.0.0/8`, `2001:db8::1`, `port 22`.
    pub exclude: Vec<String>,
    /// Addresses for clients that speak SOCKS 5 or HTTP CONNECT.
    pub listen: Vec<SocketAddr>,
    /// Where Prometheus finds `/metrics`.
    pub metrics: Option<SocketAddr>,
    /// Do not send a client's first bytes with the SYN.
    pub no_early: Option<bool>,
    /// Answer clients only when the server has answered.
    pub confirm: Option<bool>,
    /// Threads.
    pub workers: Option<usize>,
    /// Connections at the most.
    pub connections: Option<usize>,
    /// Bytes waiting in the proxy at the most, all connections together.
    pub memory: Option<String>,
    /// Bytes waiting in the proxy at the most, one way of one connection.
    pub held: Option<String>,
    /// Reset connections on which nothing moved for so long; `0s`: never.
    pub idle: Option<String>,
    /// Seconds of silence after which a peer is asked whether it is there.
    pub keepalive: Option<String>,
    /// Longest time between retransmissions on the long link.
    pub rto_max: Option<String>,
    /// Wait so long for connections to end when told to end.
    pub drain: Option<String>,
    /// Congestion control towards peers that do not speak XCP.
    pub fallback: Option<String>,
    /// First window on the long link, packets.
    pub initial_window: Option<u32>,
    /// Who to be once set up.
    pub user: Option<String>,
    /// Logs: `error`, `warn`, `info`, `debug`.
    pub log: Option<String>,
    /// Logs as JSON, one object per line.
    pub log_json: Option<bool>,
}

/// Something to leave alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclude {
    /// A network.
    Network(IpAddr, u8),
    /// A port of the server.
    Port(u16),
}

fn wrong(key: &str, why: impl std::fmt::Display) -> Error {
    Error::new(format!("{key}: {why}"))
}

impl Options {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or says something that is not known.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::because(format_args!("cannot read {}", path.display()), &e))?;
        toml::from_str(&text).map_err(|e| Error::new(format!("{}: {}", path.display(), e.to_string().trim_end())))
    }

    /// These where they say something, else those.
    #[must_use]
    pub fn over(self, file: Self) -> Self {
        fn list<T>(mine: Vec<T>, other: Vec<T>) -> Vec<T> {
            if mine.is_empty() { other } else { mine }
        }
        Self {
            wan: self.wan.or(file.wan),
            lan: list(self.lan, file.lan),
            rate: self.rate.or(file.rate),
            rtt: self.rtt.or(file.rtt),
            law: self.law.or(file.law),
            exclude: list(self.exclude, file.exclude),
            listen: list(self.listen, file.listen),
            metrics: self.metrics.or(file.metrics),
            no_early: self.no_early.or(file.no_early),
            confirm: self.confirm.or(file.confirm),
            workers: self.workers.or(file.workers),
            connections: self.connections.or(file.connections),
            memory: self.memory.or(file.memory),
            held: self.held.or(file.held),
            idle: self.idle.or(file.idle),
            keepalive: self.keepalive.or(file.keepalive),
            rto_max: self.rto_max.or(file.rto_max),
            drain: self.drain.or(file.drain),
            fallback: self.fallback.or(file.fallback),
            initial_window: self.initial_window.or(file.initial_window),
            user: self.user.or(file.user),
            log: self.log.or(file.log),
            log_json: self.log_json.or(file.log_json),
        }
    }

    fn time(key: &str, text: Option<&str>, default: Duration) -> Result<Duration> {
        text.map_or(Ok(default), |text| typed::time(text).map(Duration::from_nanos).map_err(|e| wrong(key, e)))
    }

    fn bytes(key: &str, text: Option<&str>, default: u64) -> Result<u64> {
        let Some(text) = text else { return Ok(default) };
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let factor = match text[digits.len()..].to_ascii_lowercase().as_str() {
            "" | "b" => Some(1),
            "kb" => Some(1_000),
            "mb" => Some(1_000_000),
            "gb" => Some(1_000_000_000),
            "kib" => Some(1u64 << 10),
            "mib" => Some(1 << 20),
            "gib" => Some(1 << 30),
            _ => None,
        };
        let value = digits.trim().parse::<u64>().ok().zip(factor).and_then(|(n, f)| n.checked_mul(f));
        value.ok_or_else(|| wrong(key, format_args!("\"{text}\" is not a number of bytes; write one like 64mb")))
    }

    /// The long link's rate, bit/s.
    ///
    /// # Errors
    /// It is none.
    pub fn rate_bps(&self) -> Result<Option<u64>> {
        let read = |text: &String| match typed::rate(text) {
            Ok(0..8) => Err(wrong("rate", format_args!("{text} is none; write one like 20mbit"))),
            Ok(bps) => Ok(bps),
            Err(e) => Err(wrong("rate", e)),
        };
        self.rate.as_ref().map(read).transpose()
    }

    /// The long link's round-trip time.
    ///
    /// # Errors
    /// It is none.
    pub fn rtt_ns(&self) -> Result<u64> {
        let rtt = Self::time("rtt", self.rtt.as_deref(), Duration::from_nanos(DEFAULT_RTT_NS))?;
        Ok(u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Bytes waiting in the proxy at the most.
    ///
    /// # Errors
    /// It is none.
    pub fn memory(&self) -> Result<usize> {
        Ok(usize::try_from(Self::bytes("memory", self.memory.as_deref(), 64 << 20)?).unwrap_or(usize::MAX))
    }

    /// How long to wait for connections to end.
    ///
    /// # Errors
    /// It is none.
    pub fn drain(&self) -> Result<Duration> {
        Self::time("drain", self.drain.as_deref(), Duration::from_secs(30))
    }

    /// Threads.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into)).clamp(1, 256)
    }

    /// What to leave alone.
    ///
    /// # Errors
    /// Neither network nor port.
    pub fn excludes(&self) -> Result<Vec<Exclude>> {
        self.exclude.iter().map(|text| exclude(text)).collect()
    }

    /// Bytes for which buffers are made: twice what the link carries in a round trip, so that a window's worth waits for a retransmission.
    ///
    /// # Errors
    /// Rate or time are none.
    pub fn window(&self) -> Result<usize> {
        let rtt = self.rtt_ns()?;
        let window = match self.rate_bps()? {
            None => DEFAULT_WINDOW,
            Some(bps) => {
                let bdp = u128::from(bps) * u128::from(rtt) / 8_000_000_000;
                u64::try_from(bdp.saturating_mul(2)).unwrap_or(u64::MAX)
            }
        };
        // Half of a buffer is for the kernel's own accounting; more than 256 MB for each connection is nobody's link.
        Ok(window.saturating_mul(2).clamp(256 << 10, 256 << 20) as usize)
    }

    /// Longest time between retransmissions on the long link, within what the kernel takes.
    ///
    /// # Errors
    /// It is none.
    pub fn rto_max_ms(&self) -> Result<u32> {
        let time = Self::time("rto-max", self.rto_max.as_deref(), Duration::from_secs(1))?;
        Ok(u32::try_from(time.as_millis()).unwrap_or(u32::MAX).clamp(1_000, 120_000))
    }

    /// What the data path is told; `congestion`: that of the long link, if there is XCP.
    ///
    /// # Errors
    /// A value that is none.
    pub fn settings(&self, congestion: Option<&str>, mark: u32) -> Result<Settings> {
        let default = Settings::default();
        let keepalive = Self::time("keepalive", self.keepalive.as_deref(), Duration::from_secs(60))?;
        let mut common = default.common;
        common.mark = mark;
        common.keepalive = u32::try_from(keepalive.as_secs()).unwrap_or(u32::MAX).min(32_767);
        let window = self.window()?;
        Ok(Settings {
            common,
            wan: Leg { congestion: congestion.map(ToOwned::to_owned), window },
            early: !self.no_early.unwrap_or(false) && !self.confirm.unwrap_or(false),
            idle_timeout: Self::time("idle", self.idle.as_deref(), Duration::ZERO)?,
            connections: self.connections.unwrap_or(20_000).div_ceil(self.workers()),
            held: usize::try_from(Self::bytes("held", self.held.as_deref(), 256 << 10)?).unwrap_or(usize::MAX).clamp(32 << 10, 1 << 20),
            ..default
        })
    }

    /// What differs from others and cannot be changed while it works.
    #[must_use]
    pub fn fixed_differences(&self, other: &Self) -> Vec<&'static str> {
        let mut found = Vec::new();
        let mut check = |name, same: bool| {
            if !same {
                found.push(name);
            }
        };
        check("wan", self.wan == other.wan);
        check("lan", self.lan == other.lan);
        check("law", self.law == other.law);
        check("listen", self.listen == other.listen);
        check("metrics", self.metrics == other.metrics);
        check("workers", self.workers == other.workers);
        check("memory", self.memory == other.memory);
        check("confirm", self.confirm.unwrap_or(false) == other.confirm.unwrap_or(false));
        check("fallback", self.fallback == other.fallback);
        check("initial-window", self.initial_window == other.initial_window);
        check("user", self.user == other.user);
        found
    }
}

fn exclude(text: &str) -> Result<Exclude> {
    let bad = || wrong("exclude", format_args!("\"{text}\" is neither a network like 10.0.0.0/8 nor a port like \"port 22\""));
    if let Some(port) = text.strip_prefix("port") {
        return port.trim().parse().map(Exclude::Port).map_err(|_| bad());
    }
    let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
    let address: IpAddr = address.parse().map_err(|_| bad())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = length.map_or(Ok(most), str::parse).map_err(|_| bad())?;
    if length > most { Err(bad()) } else { Ok(Exclude::Network(address, length)) }
}

/// Where a file of options is looked for if none is named.
#[must_use]
pub fn usual_file() -> PathBuf {
    PathBuf::from("/etc/xcpnet/pep.toml")
}
