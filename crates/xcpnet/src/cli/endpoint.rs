//! The command line of `endpoint`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use xcp_law::Preset;
use xcp_linux::endpoint::{FALLBACK, FIRST_WINDOW};

/// Arguments of `endpoint`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  xcpnet endpoint enable                               every connection of this machine
  xcpnet endpoint enable --port 80 --port 443          of these ports, at either end
  xcpnet endpoint enable --to 10.0.0.0/8               to these destinations
  xcpnet endpoint enable --only-asked                  of programs that ask: setsockopt(TCP_CONGESTION, \"xcp\")
  xcpnet endpoint show --watch
  xcpnet endpoint disable")]
pub struct EndpointArguments {
    #[command(subcommand)]
    pub command: EndpointCommand,
}

/// What to do with the endpoint.
#[derive(Debug, Subcommand)]
pub enum EndpointCommand {
    /// Let connections of this machine speak XCP
    Enable(Box<EndpointEnable>),
    /// Undo `enable`; connections that use XCP continue with the fallback
    Disable,
    /// Show connections and counters
    Show {
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Show it again every second, until Ctrl-C
        #[arg(long, short)]
        watch: bool,
        /// Include connections that have nothing to do with XCP
        #[arg(long)]
        all: bool,
    },
}

/// What `--sender` of `endpoint enable` takes, by the names of the laws that they are made for.
const SENDERS: [&str; 2] = [Preset::Robust.name(), Preset::Xcp.name()];

fn window(text: &str) -> Result<u32, String> {
    let (least, most) = FIRST_WINDOW.into_inner();
    let segments = text.parse().ok().filter(|n| FIRST_WINDOW.contains(n));
    segments.ok_or_else(|| format!("write a whole number from {least} to {most}"))
}

fn port(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| "write the number of a port, from 1 to 65535".to_owned())
}

/// Arguments of `endpoint enable`.
#[derive(Debug, Args)]
pub struct EndpointEnable {
    /// Give XCP only to sockets in this cgroup v2 directory [default: all sockets]
    #[arg(long, value_name = "DIR")]
    pub cgroup: Option<PathBuf>,
    /// Give XCP to connections with this port at either end; may be repeated
    #[arg(long = "port", value_name = "PORT", value_parser = port)]
    pub ports: Vec<u16>,
    /// Give XCP to connections to this address or prefix; may be repeated
    #[arg(long, value_name = "PREFIX")]
    pub to: Vec<String>,
    /// Give XCP only to programs that ask for it
    #[arg(long, conflicts_with_all = ["ports", "to"])]
    pub only_asked: bool,
    /// Congestion control towards peers that do not understand XCP
    #[arg(long, value_name = "NAME", default_value = FALLBACK)]
    pub fallback: String,
    /// Make room for the option beside SACK on this device; may be repeated [default: all that are
    /// up]
    #[arg(long = "dev", value_name = "NAME")]
    pub devices: Vec<String>,
    /// Network namespace of the devices, by name or path
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// First advertised window of every connection, in segments; 0 leaves it to the kernel [default:
    /// 2000]
    #[arg(long, value_name = "SEGMENTS", value_parser = window)]
    pub receive_window: Option<u32>,
    /// First congestion window, in packets; 0 leaves it to the kernel
    #[arg(long, value_name = "PACKETS", default_value = "0", value_parser = window)]
    pub initial_window: u32,
    /// Use the 2005 study's option instead of ours; both ends must use the same
    #[arg(long)]
    pub classic: bool,
    /// Carry bottleneck ids if both ends can, for routers whose law shuffles only the flows that
    /// they limit (ixcp, ixcp-r, robust)
    #[arg(long, conflicts_with = "classic")]
    pub ids: bool,
    /// Send packets as ACKs come in instead of spreading them over the round trip
    #[arg(long)]
    pub no_pacing: bool,
    /// `robust` keeps the rate that routers gave, if they rely on that, and limits itself by delay
    /// where no router governs (docs/robust.md); `xcp` is limited by its window, and is an ordinary
    /// TCP where there is no router [default: robust; xcp with --classic or --no-pacing]
    #[arg(long, value_name = "WORD", value_parser = SENDERS)]
    pub sender: Option<String>,
    /// Read options from a TOML file: `port = [80, 443]`, `only-asked = true`
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}
