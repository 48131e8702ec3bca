//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
  xcpnet reproduce                              every figure of the papers against its band
  xcpnet reproduce fig05 --out out              one of them, with its report

Exit status: 0 done; 1 a claim is outside its band (reproduce); 2 the input is wrong or the
result could not be written; 130 interrupted."
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
    /// Run the papers' figures and hold them against the bands the papers claim
    Reproduce(ReproduceArguments),
    /// The network that `--on linux` builds
    Lab {
        #[command(subcommand)]
        command: LabCommand,
    },
    /// Print the JSON schema of the scenario file
    Schema,
}

/// What can be done about labs.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
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

With --out DIR: report.html (one file, no network needed), NAME.links.csv and NAME.flows.csv for
each variant, summary.json (what --json prints) and the scenario files. They appear together when
everything is done; an interrupted run leaves nothing.

Expectations of a scenario are printed below the table; they do not change the exit status here,
only with `xcpnet reproduce`.")]
pub struct RunArguments {
    /// Scenario files (docs/scenario.md)
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Where to run
    #[arg(long, value_enum, value_name = "BACKEND", default_value = "sim")]
    pub on: Backend,
    /// Seed of everything random, instead of the file's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Write the report, the series and the summary into this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print the summaries as JSON, one line per run, instead of the table
    #[arg(long)]
    pub json: bool,
    /// Change a setting of the file, e.g. link.bottleneck.rate=20mbit; may be repeated
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,
    /// Run only this variant of the file; may be repeated
    #[arg(long = "variant", value_name = "NAME")]
    pub variants: Vec<String>,
    /// Simulate at most this many variants at a time [default: one per processor]
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<std::num::NonZeroUsize>,
    /// Divide each simulation among at most this many processors, which should be free; the result is the same to the byte
    #[arg(long, value_name = "N", default_value = "1")]
    pub threads: std::num::NonZeroUsize,
    /// With --out: the series as Parquet, too
    #[arg(long, requires = "out")]
    pub parquet: bool,
}

/// Arguments of `sweep`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  xcpnet sweep x.toml --set queue.target=0,150,300 --seeds 1..20 --out target
  xcpnet sweep x.toml --set link.bottleneck.rate=10mbit,100mbit --set flow.count=1..8 --out grid
  xcpnet sweep x.toml --set 'link.b.queue={ kind = \"red\", limit = \"1bdp\" },drop-tail' --out queues

Every combination of the values of each --set, of every variant and of every seed is run. DIR gets
runs.parquet, links.parquet and flows.parquet, each row with its run, variant, seed and settings:
  duckdb -c \"select * from 'target/links.parquet' where link = 'bottleneck'\"
  python3 -c \"import pandas; print(pandas.read_parquet('target/flows.parquet'))\"

Interrupted or killed, the same command goes on where it stopped; the files come out the same.")]
pub struct SweepArguments {
    /// Scenario file (docs/scenario.md)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Values of a setting, e.g. queue.target=0,150,300 or flow.count=1..8; may be repeated
    #[arg(long = "set", value_name = "PATH=V1,V2,...", value_parser = setting)]
    pub settings: Vec<(String, String)>,
    /// Seeds: 7, 1..20 (both ends included) or 1,5,9 [default: the file's]
    #[arg(long, value_name = "SEEDS")]
    pub seeds: Option<String>,
    /// Run only this variant of the file; may be repeated
    #[arg(long = "variant", value_name = "NAME")]
    pub variants: Vec<String>,
    /// Directory for the results, and for what is done until they are complete
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Run at most this many simulations at a time [default: one per processor]
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<std::num::NonZeroUsize>,
    /// Print the summaries as JSON, one line per run, instead of the table
    #[arg(long)]
    pub json: bool,
    /// Forget what DIR holds of this or another sweep and begin anew
    #[arg(long)]
    pub restart: bool,
}

/// Arguments of `reproduce`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  xcpnet reproduce                             all papers
  xcpnet reproduce zhang-henderson-2005        all figures of one
  xcpnet reproduce fig05 fig08 --out out       two figures, with reports
  xcpnet reproduce --list                      what there is

Exit status 1 when a number is outside the band that the paper claims.")]
pub struct ReproduceArguments {
    /// Papers or figures, as --list shows them; all if absent
    #[arg(value_name = "PAPER|FIGURE")]
    pub what: Vec<String>,
    /// Only list the papers and figures
    #[arg(long)]
    pub list: bool,
    /// Where to run
    #[arg(long, value_enum, value_name = "BACKEND", default_value = "sim")]
    pub on: Backend,
    /// Print one JSON object per claim instead of the tables
    #[arg(long)]
    pub json: bool,
    /// Write DIR/PAPER/FIGURE/ with report, series and summary for each figure
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Take PAPER/FIGURE.toml from this directory instead of those built into the program
    #[arg(long, value_name = "DIR")]
    pub experiments: Option<PathBuf>,
    /// Run at most this many scenarios at a time [default: one per processor]
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<std::num::NonZeroUsize>,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (path, value) = text.split_once('=').ok_or("write PATH=VALUE, e.g. link.bottleneck.rate=20mbit")?;
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

    #[test]
    fn a_setting_ends_its_path_at_the_first_equals_sign() {
        assert_eq!(setting("a.b = c=d"), Ok(("a.b".into(), "c=d".into())));
        assert!(setting("a.b").is_err());
    }
}
