//! What can be typed after `xcpnet pep`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `pep`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  xcpnet pep up --wan eth1 --lan eth0 --rate 20mbit     a gateway; the same on the other side
  xcpnet pep up --wan eth1 --lan eth0 --rate 20mbit --exclude 'port 22' --exclude 10.9.0.0/16
  xcpnet pep run --listen 127.0.0.1:1080                a proxy for SOCKS 5 and HTTP CONNECT; no root
  xcpnet pep show --watch
  xcpnet pep down

docs/pep.md says how to deploy it and what it does.")]
pub struct PepArguments {
    #[command(subcommand)]
    pub command: PepCommand,
}

/// What to do with the proxy.
#[derive(Debug, Subcommand)]
pub enum PepCommand {
    /// Start it in the background; returns when it is ready
    Up(PepRun),
    /// Run it in the foreground, as systemd wants it
    Run(PepRun),
    /// Look what is in the way of a proxy with these options, and change nothing; status 1 if
    /// something is
    Check {
        /// As for `pep up`
        #[command(flatten)]
        run: PepRun,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// End it: connections may finish, new ones pass untouched; then take everything back
    Down {
        /// Which
        #[command(flatten)]
        which: PepWhich,
        /// Do not wait for connections to finish
        #[arg(long)]
        now: bool,
    },
    /// Show its connections
    Show {
        /// Which
        #[command(flatten)]
        which: PepWhich,
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Again every second, until Ctrl-C
        #[arg(long, short)]
        watch: bool,
    },
    /// The long link has other rates: tell it, as a modem's script may; connections follow
    Rate {
        /// Which
        #[command(flatten)]
        which: PepWhich,
        /// The long link's device, where there are several proxies; what is sent; what comes, if
        /// that is another one, too
        #[arg(value_name = "[DEV] OUT [IN]", num_args = 1..=3, required = true)]
        rates: Vec<String>,
    },
    /// Let it read its file of options again; connections stay
    Reload {
        /// Which
        #[command(flatten)]
        which: PepWhich,
    },
}

/// Which proxy.
#[derive(Debug, Args, Clone)]
pub struct PepWhich {
    /// In this network namespace, by name or path
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Tells proxies of the same network namespace apart
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub name: String,
}

/// Arguments of `pep up` and `pep run`; what is not said here may be in the file.
#[derive(Debug, Args, Clone)]
pub struct PepRun {
    #[command(flatten)]
    pub which: PepWhich,
    /// Options from this file (TOML, the same names); what is typed wins [default:
    /// /etc/xcpnet/pep.toml if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Device towards the long link: connections that cross it are diverted
    #[arg(long, value_name = "DEV")]
    pub wan: Option<String>,
    /// Device towards clients and servers; may be repeated
    #[arg(long, value_name = "DEV")]
    pub lan: Vec<String>,
    /// Rate at which this gateway sends into the long link: sets up its XCP router
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Rate at which it receives from there, for buffers [default: as much as 110mbit, or --rate]
    #[arg(long, value_name = "RATE")]
    pub rate_in: Option<String>,
    /// Round-trip time of the long link, for buffers and for what connections begin with [default:
    /// 600ms]
    #[arg(long, value_name = "TIME")]
    pub rtt: Option<String>,
    /// Segments on the long link have at most this many bytes, where something on it drops larger
    /// ones [default: as its device takes]
    #[arg(long, value_name = "BYTES")]
    pub mss: Option<u32>,
    /// Law of the router
    #[arg(long, value_name = "NAME")]
    pub law: Option<String>,
    /// Who has a share of the long link: connection, or address, or prefix (/24, IPv6 /56; prefix/28
    /// or prefix/28/48 for others) of the client, however many connections it has [default:
    /// connection]
    #[arg(long, value_name = "WHOM")]
    pub share: Option<String>,
    /// Leave a network, an address or a port ('port 22') alone; may be repeated
    #[arg(long, value_name = "WHAT")]
    pub exclude: Vec<String>,
    /// Take SOCKS 5 and HTTP CONNECT at this address; may be repeated
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = super::address)]
    pub listen: Vec<SocketAddr>,
    /// Answer only clients of this network or address there; may be repeated [default: all]
    #[arg(long, value_name = "NETWORK")]
    pub allow: Vec<String>,
    /// Let them reach this network or address although it is this machine's; may be repeated
    #[arg(long, value_name = "NETWORK")]
    pub allow_target: Vec<String>,
    /// Answer Prometheus at this address
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = super::address)]
    pub metrics: Option<SocketAddr>,
    /// Do not send a client's first bytes with the SYN
    #[arg(long)]
    pub no_early: bool,
    /// Answer clients only when the server has answered, and with its answer: connected, refused,
    /// unreachable, silence; costs what early data saves
    #[arg(long)]
    pub confirm: bool,
    /// Keep connections open to the gateway at the other end of the long link, so that clients'
    /// connections start at once; on both gateways
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    pub trunk: Option<String>,
    /// Where that gateway calls this one [default: the address from which it is reached, its port]
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    pub trunk_listen: Option<String>,
    /// So many of them [default: 32]
    #[arg(long, value_name = "N")]
    pub trunk_warm: Option<usize>,
    /// Encrypt what goes by them; a client waits until there is one. On both gateways
    #[arg(long)]
    pub trunk_encrypt: bool,
    /// What both gateways know and nobody else, 16 characters or more
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Threads [default: one per processor]
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// Connections at the most; others pass untouched, or are refused [default: 20000]
    #[arg(long, value_name = "N")]
    pub connections: Option<usize>,
    /// Bytes waiting in the proxy at the most, all together [default: 64mib]
    #[arg(long, value_name = "BYTES")]
    pub memory: Option<String>,
    /// Bytes waiting in the proxy at the most, one way of one connection [default: 256kib]
    #[arg(long, value_name = "BYTES")]
    pub held: Option<String>,
    /// Reset connections on which nothing moved for so long; 0s: never [default: 0s]
    #[arg(long, value_name = "TIME")]
    pub idle: Option<String>,
    /// Ask silent peers whether they are there after this time; 0s: never [default: 60s]
    #[arg(long, value_name = "TIME")]
    pub keepalive: Option<String>,
    /// Longest time between retransmissions on the long link [default: 1s]
    #[arg(long, value_name = "TIME")]
    pub rto_max: Option<String>,
    /// When told to end, wait so long for connections to finish [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub drain: Option<String>,
    /// Congestion control towards peers that do not speak XCP [default: cubic]
    #[arg(long, value_name = "NAME")]
    pub fallback: Option<String>,
    /// First window on the long link, packets; 0: the kernel's [default: a share of what the link
    /// has free]
    #[arg(long, value_name = "PACKETS")]
    pub initial_window: Option<u32>,
    /// Who to be once set up; root: stay [default: nobody]
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Log this much: error, warn, info, debug [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<String>,
    /// Log one JSON object per line
    #[arg(long)]
    pub log_json: bool,
    /// Of `pep up`: log into this file, tell when ready
    #[arg(long, hide = true)]
    pub in_background: Option<PathBuf>,
}
