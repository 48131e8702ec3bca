//! What can be typed.

#[cfg(target_os = "linux")]
pub mod config_file;
#[cfg(target_os = "linux")]
mod endpoint;
pub mod generated;
pub mod given;
pub mod negative;
#[cfg(target_os = "linux")]
pub mod pep;
#[cfg(target_os = "linux")]
pub mod router;

#[cfg(target_os = "linux")]
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
#[cfg(target_os = "linux")]
pub use endpoint::{EndpointArguments, EndpointCommand, EndpointEnable};
#[cfg(target_os = "linux")]
pub use pep::{PepArguments, PepCommand, PepRun, PepWhich};

/// Explicit congestion control (XCP): simulate it, see it, reproduce the papers.
#[derive(Debug, Parser)]
#[command(
    name = "xcpnet",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "\
Examples:
  xcpnet run four-flows.toml                    run a scenario, print a table
  xcpnet run four-flows.toml --out out          and write out/report.html, CSV, JSON
  xcpnet run x.toml --set link.bottleneck.rate=50mbit --seed 7
  xcpnet sweep x.toml --set queue.target=0,150 --seeds 1..20 --out dir
  xcpnet plot x.toml --figure series --out queue.svg
  xcpnet playground x.toml --out page.html      a page in which it can be changed and run
  xcpnet theory x.toml                          what theory expects of it, without running it
  xcpnet reproduce                              every figure of the papers against its band
  xcpnet reproduce ixcp/fig05 --out out         one of them, with its report
  sudo xcpnet doctor                            can this machine run XCP in its kernel?

Exit status: 0 done; 1 a claim is outside its band (reproduce), something is missing (doctor)
or in the way (pep check); 2 the input is wrong or the result could not be written; 130 interrupted."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run scenarios; print a table, and with --out write the series and a report
    Run(RunArguments),
    /// Run a scenario over a grid of settings and seeds, on every processor, into Parquet files
    Sweep(SweepArguments),
    /// Run scenarios and draw one figure of them, for a paper, as SVG or PDF
    Plot(PlotArguments),
    /// Write one page in which a scenario can be changed and run, in any browser, without a network
    Playground(PlaygroundArguments),
    /// Say what theory expects of a scenario, without running it: fair shares, equilibrium,
    /// stability
    Theory(TheoryArguments),
    /// Run the papers' figures and check them against the bands that the papers claim
    Reproduce(ReproduceArguments),
    /// Show or clean up the network that `--on linux` builds
    #[cfg(target_os = "linux")]
    Lab {
        #[command(subcommand)]
        command: LabCommand,
    },
    /// Print the JSON schema of the scenario file
    Schema,
    /// Print a shell's completion script for xcpnet's commands and options
    Completions {
        /// Which shell it is for
        shell: clap_complete::Shell,
    },
    /// Write a manual page for each command
    Man {
        /// Write them into this directory, which is created
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Manage an XCP router on a device of this machine: add, change, remove, show
    #[cfg(target_os = "linux")]
    Router(router::RouterArguments),
    /// Manage XCP in this machine's TCP: enable, disable, show
    #[cfg(target_os = "linux")]
    Endpoint(EndpointArguments),
    /// Manage a proxy that carries TCP connections over a long link by XCP: up, down, show
    #[cfg(target_os = "linux")]
    Pep(Box<PepArguments>),
    /// Show routers, endpoint and proxies of this machine on a page while they work
    #[cfg(target_os = "linux")]
    Serve(ServeArguments),
    /// Check whether this machine has what XCP in the kernel needs, and say what to do if not
    #[cfg(target_os = "linux")]
    Doctor(DoctorArguments),
}

/// What can be done about labs.
#[cfg(target_os = "linux")]
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Show what a scenario would be built of: namespaces, cables, queues, lines, addresses,
    /// routes, sockets
    Plan {
        /// Scenario file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Remove what killed runs have left behind: their control groups
    Clean,
}

/// Where scenarios are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// The packet-level simulator
    Sim,
    /// Network namespaces and the kernel's own TCP, in real time; needs root
    Linux,
    /// The same, but hosts hand down packets of several segments, which routers cut up
    LinuxOffload,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  xcpnet run four-flows.toml
  xcpnet run four-flows.toml --out out             then open out/report.html
  xcpnet run four-flows.toml --json | jq .jain     one JSON object per variant
  xcpnet run four-flows.toml --variant XCP --set duration=10s
  sudo xcpnet run four-flows.toml --on linux       real kernel TCP; one run after the other

--out DIR writes report.html (one file, no network needed), NAME.links.csv and NAME.flows.csv for
each variant, summary.json (what --json prints) and the scenario files. They appear together when
everything is done; an interrupted run leaves nothing.

Expectations of a scenario are printed below the table; they do not change the exit status here,
only with `xcpnet reproduce`.")]
pub struct RunArguments {
    #[command(flatten)]
    pub what: WhatIsRun,
    /// Write the report, the series and the summary into this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print the summaries as JSON, one line per run, instead of the table
    #[arg(long)]
    pub json: bool,
    /// With --out: write the series as Parquet, too
    #[arg(long, requires = "out")]
    pub parquet: bool,
    /// With --out: leave out playground.html, a page linked from the report in which the scenario
    /// can be changed and run
    #[arg(long, requires = "out")]
    pub no_playground: bool,
    /// Treat the end of standard input as Ctrl-C, for programs that start this one and may be
    /// killed
    #[arg(long)]
    pub end_with_input: bool,
}

/// Which scenarios are run, where and how.
#[derive(Debug, Args)]
pub struct WhatIsRun {
    /// Scenario files (docs/scenario.md)
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Where to run
    #[arg(long, value_enum, value_name = "BACKEND", default_value = "sim")]
    pub on: Backend,
    /// Seed of everything random, instead of the file's
    #[arg(long, value_name = "N", value_parser = seed)]
    pub seed: Option<u64>,
    /// Change a setting of the file, e.g. link.bottleneck.rate=20mbit; may be repeated
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,
    /// Run only this variant of the file; may be repeated
    #[arg(long = "variant", value_name = "NAME")]
    pub variants: Vec<String>,
    /// Simulate at most this many variants at a time [default: one per processor]
    #[arg(long, short, value_name = "N", value_parser = at_least_one)]
    pub jobs: Option<std::num::NonZeroUsize>,
    /// Divide each simulation among at most this many processors, which should be free; the result
    /// is the same to the byte
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one)]
    pub threads: std::num::NonZeroUsize,
}

/// Arguments of `plot`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  xcpnet plot four-flows.toml --figure series --out queue.svg
  xcpnet plot four-flows.toml --figure series --quantity cwnd_packets --out cwnd.pdf
  xcpnet plot web.toml --figure cdf --out completion.pdf         completion times of all flows
  xcpnet plot web.toml --figure completion --out by-size.svg     against their sizes
  xcpnet plot four-flows.toml --figure delay --out delay.svg     goodput against round trip

Quantities have the names of the columns of NAME.links.csv and NAME.flows.csv (docs/cli.md).")]
pub struct PlotArguments {
    #[command(flatten)]
    pub what: WhatIsRun,
    /// What to draw, with all runs in one figure
    #[arg(long, value_enum, value_name = "FIGURE")]
    pub figure: FigureKind,
    /// The file to write; its name ends in .svg or .pdf
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// The quantity for `series`, or the number of each flow that `cdf` is drawn from [default:
    /// queue_mean_packets, completion_time_s]
    #[arg(long, value_name = "NAME")]
    pub quantity: Option<String>,
    /// The link direction for `series`, NAME or NAME.reverse [default: the bottleneck]
    #[arg(long, value_name = "LINK")]
    pub link: Option<String>,
}

/// What `plot` draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FigureKind {
    /// A quantity over time: a line for each run if it is a link's, for each flow if it is a flow's
    Series,
    /// The share of the flows at or below each value
    Cdf,
    /// Completion time against size, a point for each flow
    Completion,
    /// Goodput against mean round trip, a point for each flow
    Delay,
}

/// Arguments of `playground`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  xcpnet playground --out page.html                 four flows, XCP beside CUBIC
  xcpnet playground two-bottlenecks.toml --out page.html

One file for any browser: sliders change the scenario, the simulator itself runs in the page, and
the numbers are those of `xcpnet run`. It needs no network and sends nothing; the state of the page
is in its address, which can be passed on.")]
pub struct PlaygroundArguments {
    /// Scenario file with which the page starts (docs/scenario.md) [default: four flows]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// File to write the page to
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Take the engine from this file, as `make wasm` builds it, instead of the one built in
    #[arg(long, value_name = "FILE")]
    pub engine: Option<PathBuf>,
}

/// Arguments of `sweep`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  xcpnet sweep x.toml --set queue.target=0,150,300 --seeds 1..20 --out target
  xcpnet sweep x.toml --set link.bottleneck.rate=10mbit,100mbit --set flow.count=1..8 --out grid
  xcpnet sweep x.toml --set 'link.b.queue={ kind = \"red\", limit = \"1bdp\" },drop-tail' --out queues

Every combination of the values of each --set, of every variant and of every seed is run. DIR gets
runs.parquet, links.parquet, flows.parquet and groups.parquet, each row with its run, variant, seed and settings:
  duckdb -c \"select * from 'target/links.parquet' where link = 'bottleneck'\"
  python3 -c \"import pandas; print(pandas.read_parquet('target/flows.parquet'))\"

If it is interrupted or killed, the same command continues where it stopped; the files come out the
same.

On several machines that share DIR, run each shard once, in any order, and then merge; the results
are to the byte those of one machine:
  xcpnet sweep x.toml --seeds 1..1000 --out DIR --shard 3/100
  xcpnet sweep --merge DIR")]
pub struct SweepArguments {
    /// Scenario file (docs/scenario.md)
    #[arg(value_name = "FILE", required_unless_present = "merge")]
    pub file: Option<PathBuf>,
    /// Values of a setting, e.g. queue.target=0,150,300 or flow.count=1..8; may be repeated
    #[arg(long = "set", value_name = "PATH=V1,V2,...", value_parser = setting)]
    pub settings: Vec<(String, String)>,
    /// Seeds: 7, 1..20 (both ends included) or 1,5,9 [default: the file's]
    #[arg(long, value_name = "SEEDS")]
    pub seeds: Option<String>,
    /// Run only this variant of the file; may be repeated
    #[arg(long = "variant", value_name = "NAME")]
    pub variants: Vec<String>,
    /// Directory for the results, and for completed runs until all are done
    #[arg(long, value_name = "DIR", required_unless_present = "merge")]
    pub out: Option<PathBuf>,
    /// Do only the I-th of N shards of about equal work; DIR may be shared by many machines
    #[arg(long, value_name = "I/N", value_parser = shard, conflicts_with_all = ["json", "restart"])]
    pub shard: Option<Shard>,
    /// Make the results from DIR, whose shards are all done, as one machine would have written them
    #[arg(long, value_name = "DIR", conflicts_with_all = [
        "file", "settings", "seeds", "variants", "out", "shard", "jobs", "json", "restart"
    ])]
    pub merge: Option<PathBuf>,
    /// Run at most this many simulations at a time [default: one per processor]
    #[arg(long, short, value_name = "N", value_parser = at_least_one)]
    pub jobs: Option<std::num::NonZeroUsize>,
    /// Print the summaries as JSON, one line per run, instead of the table
    #[arg(long)]
    pub json: bool,
    /// Discard what DIR holds of this or another sweep and start again
    #[arg(long)]
    pub restart: bool,
}

impl SweepArguments {
    /// The directory of the results.
    pub fn out(&self) -> &Path {
        self.out.as_deref().or(self.merge.as_deref()).unwrap_or(Path::new("."))
    }
}

/// One of so many shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub number: u64,
    /// How many there are.
    pub of: u64,
}

fn shard(text: &str) -> Result<Shard, String> {
    let read = || {
        let (number, of) = text.split_once('/')?;
        Some((number.trim().parse().ok()?, of.trim().parse().ok()?))
    };
    match read() {
        Some((number, of)) if (1..=of).contains(&number) => Ok(Shard { number, of }),
        Some((_, of @ 1..)) => {
            Err(format!("write I/N, where I is from 1 to N, which is {of} here"))
        }
        _ => Err("write I/N, e.g. 3/100: the third of a hundred".to_owned()),
    }
}

/// Arguments of `theory`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  xcpnet theory two-bottlenecks.toml
  xcpnet theory x.toml --set flow.long.count=64 --at 30s
  xcpnet theory x.toml --json | jq .links

For the flows that last, it gives at one instant max-min fair shares, the rates at which XCP's law
comes to rest, and the stability margins of each XCP router; and it shows how a fluid with delay
moves over the whole run. docs/theory.md has the equations, what they assume and where they fail.
The report of `xcpnet run --out` draws shares and equilibrium beside the packets.")]
pub struct TheoryArguments {
    /// Scenario file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The instant to look at [default: the end of the measured period]
    #[arg(long, value_name = "TIME", value_parser = xcp_law::typed::time)]
    pub at: Option<u64>,
    /// Change a setting of the file, e.g. link.bottleneck.rate=20mbit; may be repeated
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,
    /// Only this variant of the file; may be repeated
    #[arg(long = "variant", value_name = "NAME")]
    pub variants: Vec<String>,
    /// Leave out the fluid model
    #[arg(long)]
    pub no_fluid: bool,
    /// Print one JSON object for each variant instead of the tables
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `reproduce`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  xcpnet reproduce                             all papers
  xcpnet reproduce zhang-henderson-2005        all figures of one
  xcpnet reproduce ixcp/fig02 ixcp/fig05 --out out   two figures, with a report
  xcpnet reproduce my-experiment.toml          a file of your own
  xcpnet reproduce --quick                     less of everything, in at most three minutes on two processors
  xcpnet reproduce failures                    where each protocol fails: a table
  xcpnet reproduce beyond                      the robust law in networks that are not in that table
  xcpnet reproduce liars                       what lying senders gain, without and with a policer
  sudo xcpnet reproduce failures --variant robust --on linux    one column of the table, on kernel TCP
  xcpnet reproduce --list                      lists everything and what it costs

Runs are kept (in $XDG_CACHE_HOME/xcpnet or ~/.cache/xcpnet, at most 4 GiB), so that the next time
only what has changed is run: another scenario, or another simulator.

The exit status is 1 if a number is outside the band that the paper claims.")]
pub struct ReproduceArguments {
    /// Papers or figures, as --list shows them, or scenario files [default: all papers]
    #[arg(value_name = "PAPER|FIGURE|FILE")]
    pub what: Vec<String>,
    /// Only list the papers, figures, claims and what they cost
    #[arg(long)]
    pub list: bool,
    /// Run less of each figure, as its file says, and leave out what takes long
    #[arg(long)]
    pub quick: bool,
    /// Run only this variant of each figure; may be repeated
    #[arg(long = "variant", value_name = "NAME")]
    pub variants: Vec<String>,
    /// Run at most this many seeds of each figure, the first ones of its file [default: all of them
    /// in the simulator, one in the kernel]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub seeds: Option<std::num::NonZeroUsize>,
    /// Where to run
    #[arg(long, value_enum, value_name = "BACKEND", default_value = "sim")]
    pub on: Backend,
    /// Print one JSON object per claim instead of the tables
    #[arg(long)]
    pub json: bool,
    /// With `failures`, `beyond` or `liars`: print the table in the form of docs/failures.md,
    /// docs/beyond.md or docs/liars.md
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Write the report into this directory: report.html, a page per paper, and DIR/PAPER/FIGURE/
    /// for each figure
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Take PAPER/FIGURE.toml from this directory instead of those built into the program
    #[arg(long, value_name = "DIR")]
    pub experiments: Option<PathBuf>,
    /// Run at most this many scenarios at a time [default: one per processor]
    #[arg(long, short, value_name = "N", value_parser = at_least_one)]
    pub jobs: Option<std::num::NonZeroUsize>,
    /// Keep runs in this directory, and look for them there
    #[arg(long, value_name = "DIR", conflicts_with = "no_cache")]
    pub cache: Option<PathBuf>,
    /// Use runs in that directory whoever wrote them; by default only this user's and root's are
    /// used
    #[arg(long, requires = "cache")]
    pub trust_cache: bool,
    /// Run everything, and keep nothing for the next time
    #[arg(long)]
    pub no_cache: bool,
}

/// Arguments of `serve`.
#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo xcpnet serve                               then open the address it prints
  ssh -L 7010:127.0.0.1:7010 gateway sudo xcpnet serve       a gateway's, from a desk
  curl -H 'Authorization: Bearer TOKEN' http://127.0.0.1:7010/metrics      for Prometheus

Shows what `router show`, `pep show` and `endpoint show` say, every second, and curves of the last
hour since it was started. Whoever has the address may look; nobody can change anything through it.
It needs root to see anything, and says so without it. With --lab, whoever has the address can also
run a scenario from the page, simulated or in its own network namespaces on this machine's Linux.")]
pub struct ServeArguments {
    /// Address and port; 0 is any port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7010",
        value_parser = address::<7010>)]
    pub listen: SocketAddr,
    /// Let scenarios be run from the page: one at a time, at most ten minutes on Linux
    #[arg(long)]
    pub lab: bool,
    /// Show this network namespace, given by name or path
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo xcpnet doctor
  sudo xcpnet doctor --for router
  sudo xcpnet doctor --json | jq '.checks[] | select(.status == \"missing\")'

Each feature is tried, and nothing of the trials stays. Without root little can be tried; what was
not tried is \"unknown\", not missing.

The exit status is 0 if everything that endpoint and router need is present, and 1 if something is
missing or could not be tried. Lab and proxy do not count; with --for only what was asked for does.")]
#[cfg(target_os = "linux")]
pub struct DoctorArguments {
    /// Check only what this needs, and say by the exit status whether it is ready: endpoint,
    /// router, lab or pep
    #[arg(long = "for", value_name = "WHAT", value_parser = group)]
    pub group: Option<xcp_linux::doctor::Group>,

    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
}

#[cfg(target_os = "linux")]
fn group(text: &str) -> Result<xcp_linux::doctor::Group, String> {
    use xcp_linux::doctor::Group;
    Group::named(text)
        .ok_or_else(|| format!("write one of {}", Group::ALL.map(Group::name).join(", ")))
}

/// An address to listen at. Whoever gives none is told one with the port that is usual there.
#[cfg(target_os = "linux")]
fn address<const USUAL: u16>(text: &str) -> Result<SocketAddr, String> {
    let missing =
        |ip| format!("the port is missing; write {}, or another port", SocketAddr::new(ip, USUAL));
    let why = |_| match text.trim_matches(['[', ']']).parse() {
        Ok(ip) => missing(ip),
        Err(_) => {
            format!("write an IP address and a port, e.g. 127.0.0.1:{USUAL} or [::1]:{USUAL}")
        }
    };
    text.parse().map_err(why)
}

/// A whole number; the standard library's own words are of invalid digits and of types.
#[cfg(target_os = "linux")]
pub fn whole<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().map_err(|_| {
        if digits {
            "this is too large; write a smaller number".to_owned()
        } else {
            "write a whole number, 0 or more".to_owned()
        }
    })
}

/// How many; clap's own message for 0 is of "zero for a non-zero type".
fn at_least_one(text: &str) -> Result<std::num::NonZeroUsize, String> {
    text.parse().map_err(|_| "write a whole number, at least 1".to_owned())
}

fn seed(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|&n| n <= xcp_sweep::MAX_SEED);
    number.ok_or_else(|| format!("a seed is a whole number from 0 to {}", xcp_sweep::MAX_SEED))
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (path, value) =
        text.split_once('=').ok_or("write PATH=VALUE, e.g. link.bottleneck.rate=20mbit")?;
    Ok((path.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_an_address_lacks_is_said() {
        assert_eq!(address::<1080>("[::1]:0"), Ok("[::1]:0".parse().unwrap()));
        let other = address::<1080>("127.0.0.1").unwrap_err();
        assert!(other.contains("write 127.0.0.1:1080,"), "{other}");
        for (text, said) in [
            ("127.0.0.1", "write 127.0.0.1:7010,"),
            ("::1", "write [::1]:7010,"),
            ("[::1]", "write [::1]:7010,"),
            ("localhost:7010", "e.g. 127.0.0.1:7010 or"),
            ("7010", "e.g. 127.0.0.1:7010 or"),
            ("127.0.0.1:70100", "e.g. 127.0.0.1:7010 or"),
        ] {
            let why = address::<7010>(text).unwrap_err();
            assert!(why.contains(said), "{text}: {why}");
        }
    }

    #[test]
    fn a_setting_ends_its_path_at_the_first_equals_sign() {
        assert_eq!(setting("a.b = c=d"), Ok(("a.b".into(), "c=d".into())));
        assert!(setting("a.b").is_err());
    }
}
