//! What the user says: on the command line, in a file (TOML, the same names), or both; the command
//! line wins. SIGHUP reads the file again.

use std::marker::PhantomData;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, IntoDeserializer as _, SeqAccess, Visitor};
use tracing::level_filters::LevelFilter;
use xcp_law::{Preset, typed};
use xcp_linux::urgent::Urgent;
use xcp_linux::{Error, Result};

use crate::gateway::wan::{self, Shaping};
use crate::listen::access::{Access, Network};
use crate::settings::Settings;
use crate::share::Share;
use crate::socket::Leg;
use crate::{trunk, urgent};

/// Least and most of an option, as people write them. Beyond them it would have no effect, or none
/// that anybody wants.
type Bounds = [&'static str; 2];
const RATES: Bounds = ["8kbit", "400gbit"];
const RTTS: Bounds = ["100us", "60s"];
const IDLE: Bounds = ["1s", "8760h"];
const KEEPALIVE: Bounds = ["1s", "32767s"];
const RTO_MAX: Bounds = ["1s", "120s"];
const HELD: Bounds = ["32kib", "1mib"];
const MEMORY: Bounds = ["1mib", "1024gib"];
const WORKERS: RangeInclusive<usize> = 1..=256;
const CONNECTIONS: RangeInclusive<usize> = 1..=1_000_000_000;

/// Connections where no number is given.
const MOST_CONNECTIONS: usize = 20_000;
/// Windows are for so many round trips of the link: while a lost packet is sent again, the others
/// go on.
const WINDOW_ROUND_TRIPS: usize = 2;
/// Bytes where a direction's rate is not given: at 600 ms enough for 110 Mbit/s.
const UNKNOWN_WINDOW: usize = 8 << 20;
/// Fewer make a slow link slower than it is; more for each connection are nobody's link.
const LEAST_WINDOW: usize = 128 << 10;
const MOST_WINDOW: usize = 256 << 20;

/// What is written to the long link and not yet sent, at the most.
const UNSENT: usize = 256 << 10;

/// Bytes of a connection that may be on the long link, each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// From here.
    pub send: usize,
    /// To here.
    pub receive: usize,
}

/// When a changed option takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// When the file is read again: for connections to come.
    Live,
    /// When the proxy is started anew.
    Start,
}

/// An option as it is given, or not.
trait Given: PartialEq + Sized {
    /// This where it says something, else the other.
    fn or(self, other: Self) -> Self;
    /// Whether both come to the same.
    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

macro_rules! given {
    ($($kind:ty),*) => {
        $(impl Given for Option<$kind> {
            fn or(self, other: Self) -> Self {
                self.or(other)
            }
        })*
    };
}
given!(String, usize, u32, SocketAddr, PathBuf);

impl Given for Option<bool> {
    fn or(self, other: Self) -> Self {
        self.or(other)
    }
    fn same(&self, other: &Self) -> bool {
        self.unwrap_or(false) == other.unwrap_or(false)
    }
}

impl<T: PartialEq> Given for Vec<T> {
    fn or(self, other: Self) -> Self {
        if self.is_empty() { other } else { self }
    }
}

/// The one table of options: what each is, and when a change of it takes effect.
macro_rules! options {
    ($($(#[$about:meta])* $name:ident: $kind:ty, $change:ident;)*) => {
        /// As read; what is absent has its default.
        #[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
        pub struct Options {
            $($(#[$about])* pub $name: $kind,)*
        }

        impl Options {
            /// The fields' names; in files and on the command line they have `-` for `_`.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// These where they say something, else those.
            #[must_use]
            pub fn over(self, file: Self) -> Self {
                Self { $($name: Given::or(self.$name, file.$name),)* }
            }

            /// These, but what can be changed live as in others.
            #[must_use]
            pub fn with_live(self, other: Self) -> Self {
                Self { $($name: if matches!(Change::$change, Change::Live) { other.$name } else { self.$name },)* }
            }

            /// What differs from others, and when that takes effect.
            #[must_use]
            pub fn differences(&self, other: &Self) -> Vec<(String, Change)> {
                let mut found = Vec::new();
                $(if !self.$name.same(&other.$name) {
                    found.push((stringify!($name).replace('_', "-"), Change::$change));
                })*
                found
            }
        }
    };
}

options! {
    /// Device towards the long link; diverts connections that cross it.
    wan: Option<String>, Start;
    /// Devices towards clients and servers.
    #[serde(deserialize_with = "one_or_many")]
    lan: Vec<String>, Start;
    /// The long link's rate in this direction.
    rate: Option<String>, Live;
    /// The long link's rate in the other direction, for buffers.
    rate_in: Option<String>, Live;
    /// Its round-trip time, for buffers.
    rtt: Option<String>, Live;
    /// Bytes of a segment on the long link at the most.
    mss: Option<u32>, Live;
    /// The long link's law.
    law: Option<String>, Start;
    /// Who has a share of the long link.
    share: Option<String>, Live;
    /// What goes first on it, up to a bound: `ef:10%`.
    urgent: Option<String>, Live;
    /// Networks, addresses and ports to leave alone: `10.0.0.0/8`, `2001:db8::1`, `port 22`.
    #[serde(deserialize_with = "one_or_many")]
    exclude: Vec<String>, Live;
    /// Addresses for clients that speak SOCKS 5 or HTTP CONNECT.
    #[serde(deserialize_with = "one_or_many")]
    listen: Vec<SocketAddr>, Start;
    /// Networks and addresses whose clients these answer; all where there are none.
    #[serde(deserialize_with = "one_or_many")]
    allow: Vec<String>, Live;
    /// Networks and addresses of this machine that these clients may reach.
    #[serde(deserialize_with = "one_or_many")]
    allow_target: Vec<String>, Live;
    /// Where Prometheus finds `/metrics`.
    metrics: Option<SocketAddr>, Start;
    /// Do not send a client's first bytes with the SYN.
    no_early: Option<bool>, Live;
    /// Answer clients only when the server has answered.
    confirm: Option<bool>, Start;
    /// The gateway at the other end of the long link, to which connections are kept open.
    trunk: Option<String>, Start;
    /// Where that one calls this one.
    trunk_listen: Option<String>, Start;
    /// How many connections are kept open.
    trunk_warm: Option<usize>, Start;
    /// Encrypt what goes by them, on both gateways.
    trunk_encrypt: Option<bool>, Start;
    /// What both gateways know and nobody else.
    secret_file: Option<PathBuf>, Start;
    /// Threads.
    workers: Option<usize>, Start;
    /// Connections at the most.
    connections: Option<usize>, Live;
    /// Bytes waiting in the proxy at the most, all connections together.
    memory: Option<String>, Start;
    /// Bytes waiting in the proxy at the most, one way of one connection.
    held: Option<String>, Start;
    /// Reset connections on which nothing moved for so long; `0s`: never.
    idle: Option<String>, Live;
    /// Seconds of silence after which a peer is asked whether it is there.
    keepalive: Option<String>, Live;
    /// Longest time between retransmissions on the long link.
    rto_max: Option<String>, Start;
    /// Wait so long for connections to end when told to end.
    drain: Option<String>, Live;
    /// Congestion control towards peers that do not speak XCP.
    fallback: Option<String>, Start;
    /// First window on the long link, packets.
    initial_window: Option<u32>, Start;
    /// Who to be once set up.
    user: Option<String>, Start;
    /// Logs: `error`, `warn`, `info`, `debug`.
    log: Option<String>, Start;
    /// Logs as JSON, one object per line.
    log_json: Option<bool>, Start;
}

/// A list of one may be written without its brackets.
fn one_or_many<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> std::result::Result<Vec<T>, D::Error> {
    struct List<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
        type Value = Vec<T>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a text or a list of texts, like [\"eth0\", \"eth2\"]")
        }
        fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<Self::Value, E> {
            T::deserialize(text.into_deserializer()).map(|one| vec![one])
        }
        fn visit_seq<A: SeqAccess<'de>>(
            self,
            list: A,
        ) -> std::result::Result<Self::Value, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(list))
        }
    }
    from.deserialize_any(List(PhantomData))
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

/// A value within its bounds.
fn within<T: PartialOrd>(
    key: &str,
    text: &str,
    [least, most]: Bounds,
    read: impl Fn(&str, &str) -> Result<T>,
) -> Result<T> {
    let value = read(key, text)?;
    if (read(key, least)?..=read(key, most)?).contains(&value) {
        Ok(value)
    } else {
        Err(wrong(key, format_args!("\"{text}\" is not between {least} and {most}")))
    }
}

/// The same of a time that may also be none at all.
fn within_or_zero(key: &str, text: &str, bounds: Bounds) -> Result<Duration> {
    match Options::time(key, text)? {
        Duration::ZERO => Ok(Duration::ZERO),
        _ => within(key, text, bounds, Options::time),
    }
}

/// The same of a number.
fn number(key: &str, value: usize, range: RangeInclusive<usize>) -> Result<usize> {
    if range.contains(&value) {
        return Ok(value);
    }
    let (least, most) = range.into_inner();
    Err(wrong(key, format_args!("{value} is not between {least} and {most}")))
}

impl Options {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or says something that is not known.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Error::because(format_args!("cannot read {}", path.display()), e))?;
        toml::from_str(&text)
            .map_err(|e| Error::new(format!("{}: {}", path.display(), e.to_string().trim_end())))
    }

    fn time(key: &str, text: &str) -> Result<Duration> {
        typed::time(text).map(Duration::from_nanos).map_err(|e| wrong(key, e))
    }

    fn bytes(key: &str, text: &str) -> Result<u64> {
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
        let value =
            digits.trim().parse::<u64>().ok().zip(factor).and_then(|(n, f)| n.checked_mul(f));
        value.ok_or_else(|| {
            wrong(key, format_args!("\"{text}\" is not a number of bytes; write one like 64mb"))
        })
    }

    fn bps(key: &str, text: Option<&String>) -> Result<Option<u64>> {
        let read = |key: &str, text: &str| typed::rate(text).map_err(|e| wrong(key, e));
        text.map(|text| within(key, text, RATES, read)).transpose()
    }

    /// The long link's rate for what this gateway sends, bit/s.
    ///
    /// # Errors
    /// It is none.
    pub fn rate_bps(&self) -> Result<Option<u64>> {
        Self::bps("rate", self.rate.as_ref())
    }

    /// Its rate for what comes, bit/s.
    ///
    /// # Errors
    /// It is none.
    pub fn rate_in_bps(&self) -> Result<Option<u64>> {
        Self::bps("rate-in", self.rate_in.as_ref())
    }

    /// The long link's round-trip time.
    ///
    /// # Errors
    /// It is none.
    pub fn rtt_ns(&self) -> Result<u64> {
        let rtt = within("rtt", self.rtt.as_deref().unwrap_or("600ms"), RTTS, Self::time)?;
        Ok(u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Bytes waiting in the proxy at the most.
    ///
    /// # Errors
    /// It is none.
    pub fn memory(&self) -> Result<usize> {
        let text = self.memory.as_deref().unwrap_or("64mib");
        Ok(usize::try_from(within("memory", text, MEMORY, Self::bytes)?).unwrap_or(usize::MAX))
    }

    /// How long to wait for connections to end.
    ///
    /// # Errors
    /// It is none.
    pub fn drain(&self) -> Result<Duration> {
        Self::time("drain", self.drain.as_deref().unwrap_or("30s"))
    }

    /// The congestion control towards peers that do not speak XCP.
    #[must_use]
    pub fn fallback(&self) -> &str {
        self.fallback.as_deref().unwrap_or("cubic")
    }

    /// What is logged.
    ///
    /// # Errors
    /// It is no level.
    pub fn log_level(&self) -> Result<LevelFilter> {
        let Some(text) = &self.log else { return Ok(LevelFilter::INFO) };
        text.parse().map_err(|_| {
            wrong("log", format_args!("\"{text}\" is not one of error, warn, info, debug"))
        })
    }

    /// Number of worker threads.
    ///
    /// # Errors
    /// None, or too many.
    pub fn workers(&self) -> Result<usize> {
        let Some(workers) = self.workers else {
            let processors = std::thread::available_parallelism().map_or(1, Into::into);
            return Ok(processors.min(*WORKERS.end()));
        };
        number("workers", workers, WORKERS)
    }

    /// What to leave alone.
    ///
    /// # Errors
    /// Neither network nor port.
    pub fn excludes(&self) -> Result<Vec<Exclude>> {
        self.exclude.iter().map(|text| exclude(text)).collect()
    }

    /// Bytes of a segment on the long link at the most; 0: what its device takes.
    ///
    /// # Errors
    /// More or fewer than the kernel takes.
    pub fn mss(&self) -> Result<u32> {
        match self.mss {
            None => Ok(0),
            Some(mss @ 88..=32_767) => Ok(mss),
            Some(mss) => Err(wrong(
                "mss",
                format_args!(
                    "segments cannot have {mss} bytes; they may have from 88 to 32767, and 1360 is \
                        usual behind tunnels"
                ),
            )),
        }
    }

    /// How many bytes of a connection may be on the long link.
    ///
    /// # Errors
    /// Rates or time are none.
    pub fn windows(&self) -> Result<Windows> {
        let rtt = self.rtt_ns()?;
        let content = |bps: u64| {
            let bytes = u128::from(bps) * u128::from(rtt) / 8_000_000_000;
            usize::try_from(bytes).unwrap_or(usize::MAX).saturating_mul(WINDOW_ROUND_TRIPS)
        };
        let out = self.rate_bps()?.map_or(UNKNOWN_WINDOW, content);
        // The other direction may be many times faster: most links of satellites are so.
        let unsaid = out.max(UNKNOWN_WINDOW);
        let receive = self.rate_in_bps()?.map_or(unsaid, content);
        let within = |bytes: usize| bytes.clamp(LEAST_WINDOW, MOST_WINDOW);
        Ok(Windows { send: within(out), receive: within(receive) })
    }

    /// Longest time between retransmissions on the long link.
    ///
    /// # Errors
    /// It is none.
    pub fn rto_max_ms(&self) -> Result<u32> {
        let text = self.rto_max.as_deref().unwrap_or("1s");
        let time = within("rto-max", text, RTO_MAX, Self::time)?;
        Ok(u32::try_from(time.as_millis()).unwrap_or(u32::MAX))
    }

    /// What the data path is told; `congestion`: that of the long link, if there is XCP.
    ///
    /// # Errors
    /// A value that is none.
    pub fn settings(&self, congestion: Option<&str>, mark: u32) -> Result<Settings> {
        let default = Settings::default();
        let keepalive =
            within_or_zero("keepalive", self.keepalive.as_deref().unwrap_or("60s"), KEEPALIVE)?;
        let mut common = default.common;
        common.mark = mark;
        common.keepalive = u32::try_from(keepalive.as_secs()).unwrap_or(u32::MAX);
        let windows = self.windows()?;
        let held = self.held()?;
        Ok(Settings {
            common,
            lan: Leg { receive: held, unsent: held, ..Leg::default() },
            wan: Leg {
                congestion: congestion.map(ToOwned::to_owned),
                // What is sent stays until it is acknowledged; the kernel's accounts of it take as
                // much again.
                send: windows.send * 2,
                receive: windows.receive,
                unsent: UNSENT,
                mss: self.mss()?,
            },
            early: !self.no_early.unwrap_or(false) && !self.confirm.unwrap_or(false),
            idle_timeout: within_or_zero("idle", self.idle.as_deref().unwrap_or("0s"), IDLE)?,
            connections: number(
                "connections",
                self.connections.unwrap_or(MOST_CONNECTIONS),
                CONNECTIONS,
            )?,
            access: self.access()?,
            share: self.share()?,
            urgent: self.urgent()?,
            held,
            ..default
        })
    }

    /// Who has a share of the long link.
    ///
    /// # Errors
    /// Nobody that is known; there is no long link.
    pub fn share(&self) -> Result<Share> {
        let Some(text) = &self.share else { return Ok(Share::default()) };
        let share = Share::read(text).ok_or_else(|| {
            wrong("share", format_args!("\"{text}\" is not one of {}", Share::CHOICES))
        })?;
        if share != Share::default() && self.wan.is_none() {
            return Err(Error::new(
                "share: only a gateway can share out a long link, and this proxy is not one",
            )
            .remedy("give the devices: --wan DEV --lan DEV"));
        }
        Ok(share)
    }

    /// What goes first on the long link, and up to which bound.
    ///
    /// # Errors
    /// What is no DSCP, or no bound; there is no queue in which it could go first.
    pub fn urgent(&self) -> Result<Option<Urgent>> {
        let Some(text) = &self.urgent else { return Ok(None) };
        let urgent = urgent::read(text).map_err(|why| wrong("urgent", why))?;
        if self.wan.is_none() || self.rate.is_none() {
            return Err(Error::new(
                "urgent: packets wait for each other only if this gateway shapes the long link",
            )
            .remedy("give its device and its rate: --wan DEV --rate 20mbit"));
        }
        Ok(Some(urgent))
    }

    /// The long link's law: its router's if this proxy has one, and its senders'.
    ///
    /// # Errors
    /// It is not known, or does not go with something else that is asked for.
    pub fn law(&self) -> Result<Preset> {
        let Some(name) = &self.law else {
            let serves = self.refused_by(wan::DEFAULT_LAW)?.is_none();
            return Ok(if serves { wan::DEFAULT_LAW } else { wan::OTHER_LAW });
        };
        if self.wan.is_none() {
            return Err(Error::new(
                "law: only a gateway has a long link, and this proxy is not one",
            )
            .remedy("give the devices: --wan DEV --lan DEV"));
        }
        let law = wan::law(name)?;
        match self.refused_by(law)? {
            Some(refused) => Err(refused.remedy("leave it out, or choose another law")),
            None => Ok(law),
        }
    }

    /// Whether these can take effect where a law runs that was chosen before they were known.
    ///
    /// # Errors
    /// They cannot, or are none.
    pub fn go_with(&self, running: Preset) -> Result<()> {
        match self.refused_by(running)? {
            Some(refused) => Err(refused.remedy(format!(
                "leave it out, or restart the proxy with it: by itself it then chooses the law \
                 `{}`",
                wan::OTHER_LAW.name()
            ))),
            None => Ok(()),
        }
    }

    /// What a law does not do of what is asked for.
    fn refused_by(&self, law: Preset) -> Result<Option<Error>> {
        let refused = |key: &str, why: &str| {
            Ok(Some(Error::new(format!("{key}: the law `{}` {why}", law.name()))))
        };
        let (urgent, share) = (self.urgent()?, self.share()?);
        if law != Preset::Robust {
            Ok(None)
        } else if urgent.is_some() {
            refused("urgent", "has no queue for urgent packets")
        } else if share != Share::default() {
            refused("share", "is for senders that share by connection")
        } else {
            Ok(None)
        }
    }

    /// How the long link is shaped; `None`: not by this proxy.
    ///
    /// # Errors
    /// A value that is none.
    pub fn shaping(&self) -> Result<Option<Shaping>> {
        let (rtt, urgent) = (self.rtt_ns()?, self.urgent()?.is_some());
        Ok(self.rate_bps()?.map(|rate| Shaping { rate, rtt, urgent }))
    }

    /// Whom the explicit listener answers, and where it goes.
    ///
    /// # Errors
    /// What is no network.
    pub fn access(&self) -> Result<Access> {
        let read = |key: &str, texts: &[String]| -> Result<Vec<Network>> {
            let wrong_one = |text: &String| {
                wrong(key, format_args!("\"{text}\" is not a network like 10.0.0.0/8"))
            };
            texts
                .iter()
                .map(|text| network(text).ok_or_else(|| wrong_one(text)))
                .map(|n| n.map(|(a, l)| Network::new(a, l)))
                .collect()
        };
        Ok(Access {
            clients: read("allow", &self.allow)?,
            targets: read("allow-target", &self.allow_target)?,
        })
    }

    /// How many connections the trunk keeps open.
    fn trunk_warm(&self) -> Result<usize> {
        number("trunk-warm", self.trunk_warm.unwrap_or(trunk::WARM), 1..=trunk::MOST_WARM)
    }

    /// The other gateway, and the address of ours that it is to call, if that was said.
    ///
    /// # Errors
    /// They are none, do not go together, or lack the secret.
    pub fn trunk(&self) -> Result<Option<(SocketAddr, Option<SocketAddr>)>> {
        let read = |key: &str, text: &String| {
            trunk::address(text).ok_or_else(|| {
                wrong(
                    key,
                    format_args!("\"{text}\" is not an address like 192.0.2.1 or 192.0.2.1:4000"),
                )
            })
        };
        self.trunk_warm()?;
        let Some(peer) = &self.trunk else {
            let encrypt = self.trunk_encrypt == Some(true);
            let alone = self.trunk_listen.is_some() || self.secret_file.is_some() || encrypt;
            return if alone {
                Err(Error::new(
                    "trunk-listen, trunk-encrypt and secret-file need a trunk, but \
                    none is requested",
                )
                .remedy("give the other gateway: --trunk ADDRESS"))
            } else {
                Ok(None)
            };
        };
        let peer = read("trunk", peer)?;
        let own = self.trunk_listen.as_ref().map(|own| read("trunk-listen", own)).transpose()?;
        if self.wan.is_none() {
            return Err(Error::new("trunk: only diverted connections can use it")
                .remedy("give the devices: --wan DEV --lan DEV"));
        }
        if self.confirm == Some(true) {
            return Err(Error::new(
                "trunk: with confirm a client waits for its server's answer, \
                which takes the round trip that a trunk saves",
            )
            .remedy("leave out one of them"));
        }
        if self.secret_file.is_none() {
            return Err(Error::new(
                "trunk: the gateways recognise each other by a secret, but none is given",
            )
            .remedy("give a file with the same secret on both gateways: --secret-file FILE"));
        }
        if own.is_some_and(|own| own.is_ipv4() != peer.is_ipv4()) {
            return Err(wrong(
                "trunk-listen",
                "one address is IPv4, and the other gateway's is IPv6",
            ));
        }
        Ok(Some((peer, own)))
    }

    /// The trunk, with what of it is found on this machine.
    ///
    /// # Errors
    /// As above; no secret; no way to the other gateway.
    pub fn trunk_plan(&self) -> Result<Option<trunk::Plan>> {
        let Some((peer, own)) = self.trunk()? else { return Ok(None) };
        let secret = trunk::read_secret(self.secret_file.as_deref().unwrap_or(Path::new("")))?;
        let listen = match own {
            Some(own) => own,
            None => {
                let address = trunk::own_address(peer).map_err(|e| {
                    Error::because(format_args!("trunk: no route to {}", peer.ip()), e).remedy(
                        "give the address at which the other gateway reaches this one: \
                         --trunk-listen ADDRESS",
                    )
                })?;
                SocketAddr::new(address, peer.port())
            }
        };
        let warm = self.trunk_warm()?;
        let encrypt = self.trunk_encrypt == Some(true);
        Ok(Some(trunk::Plan { peer, listen, warm, secret, encrypt }))
    }

    /// What is allowed, and is seldom meant.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let open = self.listen.iter().filter(|at| !at.ip().is_loopback() && self.allow.is_empty());
        open.map(|at| {
            let whom = if at.ip().is_unspecified() {
                "everybody, on every side of this machine,"
            } else {
                "everybody"
            };
            format!(
                "listen: {at} answers {whom} who can reach it; restrict who may use it: --allow \
                 NETWORK"
            )
        })
        .collect()
    }

    /// Bytes that one way of a connection may hold.
    ///
    /// # Errors
    /// They are none.
    pub fn held(&self) -> Result<usize> {
        let held = within("held", self.held.as_deref().unwrap_or("256kib"), HELD, Self::bytes)?;
        Ok(usize::try_from(held).unwrap_or(usize::MAX))
    }
}

fn exclude(text: &str) -> Result<Exclude> {
    let bad = || {
        wrong(
            "exclude",
            format_args!(
                "\"{text}\" is neither a network like 10.0.0.0/8 nor a port like \"port 22\""
            ),
        )
    };
    if let Some(port) = text.strip_prefix("port") {
        return port.trim().parse().map(Exclude::Port).map_err(|_| bad());
    }
    network(text).map(|(address, length)| Exclude::Network(address, length)).ok_or_else(bad)
}

/// An address, or a network with the length of its common part.
fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = length.map_or(Ok(most), str::parse).ok()?;
    (length <= most).then_some((address, length))
}

/// Where a file of options is looked for if none is named.
#[must_use]
pub fn usual_file() -> PathBuf {
    PathBuf::from("/etc/xcpnet/pep.toml")
}
