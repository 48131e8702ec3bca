//! What can be typed after `xcpnet pep`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use xcp_pep::gateway::owner::UNNAMED;

use super::negative::is_negative;
use crate::failure::Failure;

/// Arguments of `pep`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  xcpnet pep up --wan eth1 --lan eth0 --rate 20mbit     a gateway; do the same on the other side
  xcpnet pep up --wan eth1 --lan eth0 --rate 20mbit --exclude 'port 22' --exclude 10.9.0.0/16
  xcpnet pep run --listen 127.0.0.1:1080                a SOCKS 5 and HTTP proxy, without root
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
    /// Start the proxy in the background, and return when it is ready
    Up(PepRun),
    /// Run the proxy in the foreground, as systemd expects a service to run
    Run(PepRun),
    /// Say what is in the way of a proxy with these options, without changing anything; the exit
    /// status is 1 if something is
    Check {
        /// The options of `pep up`
        #[command(flatten)]
        run: PepRun,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop the proxy: new connections pass untouched, those that it carries may finish, then
    /// everything that it has set up is undone
    Down {
        /// Which proxy
        #[command(flatten)]
        which: PepWhich,
        /// Do not wait for connections to finish: reset them
        #[arg(long)]
        now: bool,
    },
    /// Show what the proxy is doing, and its connections
    Show {
        /// Which proxy
        #[command(flatten)]
        which: PepWhich,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Show it again every second, until Ctrl-C
        #[arg(long, short)]
        watch: bool,
    },
    /// Tell the proxy that the long link's rates have changed, as a modem's script may do;
    /// connections follow at once
    Rate {
        /// Which proxy
        #[command(flatten)]
        which: PepWhich,
        /// OUT is the rate at which this gateway sends from now on, IN the rate at which it
        /// receives, if that has changed, too; DEV names the long link's device if there are
        /// several proxies
        #[arg(value_name = "[DEV] OUT [IN]", num_args = 1..=3, required = true)]
        rates: Vec<String>,
    },
    /// Have the proxy read its file of options again; its connections stay
    Reload {
        /// Which proxy
        #[command(flatten)]
        which: PepWhich,
    },
}

/// Which proxy is meant.
#[derive(Debug, Args, Clone)]
pub struct PepWhich {
    /// Work in this network namespace, given by name or path
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Name of the proxy, if a network namespace has several
    #[arg(long, value_name = "NAME", default_value = UNNAMED)]
    pub name: String,
}

/// Arguments of `pep up` and `pep run`; what is not said here may be in the file.
#[derive(Debug, Args, Clone)]
pub struct PepRun {
    #[command(flatten)]
    pub which: PepWhich,
    /// Read options from this TOML file, which uses the same names; options on the command line
    /// take precedence [default: /etc/xcpnet/pep.toml if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Device towards the long link; the proxy takes the connections that cross it
    #[arg(long, value_name = "DEV")]
    pub wan: Option<String>,
    /// Device towards clients and servers; may be repeated
    #[arg(long, value_name = "DEV")]
    pub lan: Vec<String>,
    /// Rate at which this gateway sends into the long link; with it, the proxy sets up a shaper
    /// and an XCP router there
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Rate at which this gateway receives from the long link, which determines how large buffers
    /// are [default: room for 8 MiB, or for what --rate needs if that is more]
    #[arg(long, value_name = "RATE")]
    pub rate_in: Option<String>,
    /// Round-trip time of the long link, which determines how large buffers are and how fast
    /// connections start [default: 600ms]
    #[arg(long, value_name = "TIME")]
    pub rtt: Option<String>,
    /// Send segments of at most this many bytes over the long link, if something on it drops larger
    /// ones [default: what its device allows]
    #[arg(long, value_name = "BYTES", value_parser = super::whole::<u32>)]
    pub mss: Option<u32>,
    /// Law of the XCP router and its senders. `robust` (docs/robust.md) also copes with links that
    /// turn out to carry less than --rate says, but has neither --urgent nor --share
    /// [default: robust; p-xcp with --urgent or --share]
    #[arg(long, value_name = "NAME")]
    pub law: Option<String>,
    /// Give an equal share of the long link to each connection, to each client address, or to each
    /// client prefix, however many connections it has: connection, address, prefix (/24, IPv6 /56),
    /// prefix/28 or prefix/28/48 [default: connection]
    #[arg(long, value_name = "WHOM")]
    pub share: Option<String>,
    /// Send packets with these DSCPs first, as long as they take no more than this share of --rate:
    /// ef:10% or ef,cs5:20% [default: no packet goes first]
    #[arg(long, value_name = "DSCP[,DSCP]:SHARE")]
    pub urgent: Option<String>,
    /// Leave connections to or from this network or address, or to this port ('port 22'), alone;
    /// may be repeated
    #[arg(long, value_name = "WHAT")]
    pub exclude: Vec<String>,
    /// Accept SOCKS 5 and HTTP CONNECT requests at this address; may be repeated
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = super::address::<1080>)]
    pub listen: Vec<SocketAddr>,
    /// Answer only clients from this network or address at --listen; may be repeated [default:
    /// everybody]
    #[arg(long, value_name = "NETWORK")]
    pub allow: Vec<String>,
    /// Let clients reach this network or address although it belongs to this machine; may be
    /// repeated
    #[arg(long, value_name = "NETWORK")]
    pub allow_target: Vec<String>,
    /// Serve metrics for Prometheus at this address
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = super::address::<9999>)]
    pub metrics: Option<SocketAddr>,
    /// Neither send a client's first bytes together with the SYN nor accept such bytes from the
    /// long link
    #[arg(long)]
    pub no_early: bool,
    /// Answer clients only when the server has answered, and with its answer (connected, refused,
    /// unreachable or nothing); this costs the round trip that early data saves
    #[arg(long)]
    pub confirm: bool,
    /// Keep connections open to the other gateway, which has this address, so that clients'
    /// connections start at once; both gateways need it
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    pub trunk: Option<String>,
    /// Address at which the other gateway connects to this one [default: the address from which
    /// this gateway reaches it, and the port of --trunk]
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    pub trunk_listen: Option<String>,
    /// Keep this many connections of the trunk open [default: 32]
    #[arg(long, value_name = "N", value_parser = super::whole::<usize>)]
    pub trunk_warm: Option<usize>,
    /// Encrypt what goes through the trunk; clients wait until one of its connections is open. Both
    /// gateways need it
    #[arg(long)]
    pub trunk_encrypt: bool,
    /// File with a secret that both gateways know and nobody else, of 16 characters or more
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Number of threads [default: one per processor]
    #[arg(long, value_name = "N", value_parser = super::whole::<usize>)]
    pub workers: Option<usize>,
    /// Carry at most this many connections; further ones pass untouched, or are refused at --listen
    /// [default: 20000]
    #[arg(long, value_name = "N", value_parser = super::whole::<usize>)]
    pub connections: Option<usize>,
    /// Let at most this many bytes wait in the proxy, for all connections together; kib, mib and gib
    /// are multiples of 1024, and kb, mb and gb of 1000 [default: 64mib]
    #[arg(long, value_name = "BYTES")]
    pub memory: Option<String>,
    /// Let at most this many bytes of a connection wait in the proxy, in each direction; units are
    /// those of --memory [default: 256kib]
    #[arg(long, value_name = "BYTES")]
    pub held: Option<String>,
    /// Reset connections on which nothing has moved for this long; 0s means never [default: 0s]
    #[arg(long, value_name = "TIME")]
    pub idle: Option<String>,
    /// Ask a silent peer after this time whether it is still there; 0s means never [default: 60s]
    #[arg(long, value_name = "TIME")]
    pub keepalive: Option<String>,
    /// Retransmit at least this often on the long link during an outage [default: 1s]
    #[arg(long, value_name = "TIME")]
    pub rto_max: Option<String>,
    /// When told to stop, wait this long for connections to finish [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub drain: Option<String>,
    /// Use this congestion control towards peers that do not speak XCP [default: cubic]
    #[arg(long, value_name = "NAME")]
    pub fallback: Option<String>,
    /// Start connections with a window of this many packets on the long link; 0 means the kernel's
    /// own [default: a share of what is free on the link]
    #[arg(long, value_name = "PACKETS", value_parser = super::whole::<u32>)]
    pub initial_window: Option<u32>,
    /// Become this user once everything is set up; root means to stay root [default: nobody]
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Log this much: error, warn, info or debug [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<String>,
    /// Log as JSON, one object per line
    #[arg(long)]
    pub log_json: bool,
    /// Of `pep up`: log into this file, tell when ready
    #[arg(long, hide = true)]
    pub in_background: Option<PathBuf>,
}

/// Says of a rate below 0 after `pep rate` that there is none, for which clap takes it as an option.
///
/// # Errors
/// There is one.
pub fn refuse_negative_rates(line: &[OsString]) -> Result<(), Failure> {
    if line.get(1..3).is_none_or(|words| words != ["pep", "rate"]) {
        return Ok(());
    }
    let negative = line.iter().find(|word| is_negative(word)).map(|word| word.to_string_lossy());
    let read = negative.map(|word| xcp_law::typed::rate(&word)).transpose();
    read.map(|_| ()).map_err(|why| Failure::new(format!("pep rate: {why}")))
}

#[cfg(test)]
mod tests {
    use clap::Args as _;
    use xcp_pep::options::Options;

    use super::PepRun;

    /// What can be in the file can be typed, under the same name.
    #[test]
    fn every_option_of_the_file_is_a_flag() {
        let command = PepRun::augment_args(clap::Command::new("run"));
        for name in Options::NAMES {
            let flag = name.replace('_', "-");
            assert!(command.get_arguments().any(|a| a.get_long() == Some(&flag)), "no --{flag}");
        }
    }
}
