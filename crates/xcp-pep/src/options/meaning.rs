//! What the options amount to: each read from what was given, or its default, and those that do not
//! go together refused.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use tracing::level_filters::LevelFilter;
use xcp_law::{Preset, typed};
use xcp_linux::endpoint::FIRST_WINDOW;
use xcp_linux::urgent::Urgent;
use xcp_linux::{Error, Result};

use super::Options;
use super::value::{Bounds, bytes, network, number, time, within, within_or_zero, wrong};
use crate::gateway::wan::{self, Shaping};
use crate::listen::access::{Access, Network};
use crate::settings::Settings;
use crate::share::Share;
use crate::socket::Leg;
use crate::urgent;

const RATES: Bounds = ["8kbit", "400gbit"];
const RTTS: Bounds = ["100us", "60s"];
const IDLE: Bounds = ["1s", "8760h"];
const KEEPALIVE: Bounds = ["1s", "32767s"];
const RTO_MAX: Bounds = ["1s", "120s"];
const HELD: Bounds = ["32kib", "1mib"];
const MEMORY: Bounds = ["1mib", "1024gib"];
const WORKERS: RangeInclusive<usize> = 1..=256;
const CONNECTIONS: RangeInclusive<usize> = 1..=1_000_000_000;

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

/// Something to leave alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclude {
    /// A network.
    Network(IpAddr, u8),
    /// A port of the server.
    Port(u16),
}

impl Options {
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
        let rtt = within("rtt", self.rtt.as_deref().unwrap_or("600ms"), RTTS, time)?;
        Ok(u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Bytes waiting in the proxy at the most.
    ///
    /// # Errors
    /// It is none.
    pub fn memory(&self) -> Result<usize> {
        let text = self.memory.as_deref().unwrap_or("64mib");
        Ok(usize::try_from(within("memory", text, MEMORY, bytes)?).unwrap_or(usize::MAX))
    }

    /// How long to wait for connections to end.
    ///
    /// # Errors
    /// It is none.
    pub fn drain(&self) -> Result<Duration> {
        time("drain", self.drain.as_deref().unwrap_or("30s"))
    }

    /// The congestion control towards peers that do not speak XCP.
    #[must_use]
    pub fn fallback(&self) -> &str {
        self.fallback.as_deref().unwrap_or(xcp_linux::endpoint::FALLBACK)
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
            Some(mss) if xcp_linux::MSS.contains(&mss) => Ok(mss),
            Some(mss) => Err(wrong(
                "mss",
                format_args!(
                    "segments cannot have {mss} bytes; they may have from {} to {}, and 1360 is usual \
                        behind tunnels",
                    xcp_linux::MSS.start(),
                    xcp_linux::MSS.end()
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
        let time = within("rto-max", text, RTO_MAX, time)?;
        Ok(u32::try_from(time.as_millis()).unwrap_or(u32::MAX))
    }

    /// The first window on the long link, packets; 0: the kernel's.
    ///
    /// # Errors
    /// None that the kernel could have.
    pub fn initial_window(&self) -> Result<u32> {
        number("initial-window", self.initial_window.unwrap_or(0), FIRST_WINDOW)
    }

    /// What the data path is told; `congestion`: that of the long link, if there is XCP.
    ///
    /// # Errors
    /// A value that is none.
    pub fn settings(&self, congestion: Option<&str>, mark: u32) -> Result<Settings> {
        let default = Settings::default();
        let mut common = default.common;
        common.mark = mark;
        if let Some(text) = &self.keepalive {
            let keepalive = within_or_zero("keepalive", text, KEEPALIVE)?;
            common.keepalive = u32::try_from(keepalive.as_secs()).unwrap_or(u32::MAX);
        }
        let idle = self.idle.as_ref().map(|text| within_or_zero("idle", text, IDLE)).transpose()?;
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
            idle_timeout: idle.unwrap_or(default.idle_timeout),
            connections: number(
                "connections",
                self.connections.unwrap_or(default.connections),
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
                "leave it out, or restart the proxy with it; the proxy then chooses the law `{}`",
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
    /// What is no network; nobody is there to ask.
    pub fn access(&self) -> Result<Access> {
        let unheard = |key: &str, whose: &str, remedy: &str| {
            Err(wrong(key, format_args!("{whose}, and there is none")).remedy(remedy))
        };
        if !self.allow.is_empty() && self.listen.is_empty() {
            let remedy = "give its address, --listen ADDRESS, or leave out --allow";
            return unheard("allow", "it says whom the explicit listener answers", remedy);
        }
        if !self.allow_target.is_empty() && self.listen.is_empty() && self.trunk.is_none() {
            let whose = "it says where clients of the explicit listener or of a trunk may go";
            let remedy = "give one, --listen ADDRESS or --trunk ADDRESS, or leave out \
                --allow-target";
            return unheard("allow-target", whose, remedy);
        }
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
        let Some(text) = &self.held else { return Ok(Settings::default().held) };
        Ok(usize::try_from(within("held", text, HELD, bytes)?).unwrap_or(usize::MAX))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_ask_and_go_where_needs_somebody_to_ask() {
        let networks = || vec!["10.0.0.0/8".to_owned()];
        let (allow, target) = (
            Options { allow: networks(), ..Options::default() },
            Options { allow_target: networks(), ..Options::default() },
        );
        let listen = vec!["127.0.0.1:1080".parse().unwrap()];
        let trunk = Some("192.0.2.1".to_owned());
        for (options, remedy) in [
            (allow.clone(), "--listen ADDRESS"),
            (Options { trunk: trunk.clone(), ..allow.clone() }, "--listen ADDRESS"),
            (target.clone(), "--trunk ADDRESS"),
        ] {
            let refused = options.access().unwrap_err().to_string();
            assert!(refused.starts_with("allow") && refused.contains(remedy), "{refused}");
        }
        for options in [
            Options { listen: listen.clone(), ..allow },
            Options { listen, ..target.clone() },
            Options { trunk, ..target },
        ] {
            options.access().unwrap();
        }
    }

    #[test]
    fn who_asks_for_nothing_has_the_settings_that_everybody_has() {
        let (asked, usual) = (Options::default().settings(None, 0).unwrap(), Settings::default());
        assert_eq!(asked.common.keepalive, usual.common.keepalive);
        assert_eq!(
            (asked.connections, asked.held, asked.idle_timeout),
            (usual.connections, usual.held, usual.idle_timeout)
        );
        assert_eq!(asked.connections, 20_000, "published in the help");
    }
}
