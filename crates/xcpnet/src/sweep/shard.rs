//! `sweep --shard I/N` and `sweep --merge`: a sweep on several machines that share a directory, as
//! the tasks of a Slurm array do. What shards are and how they are kept is `xcp-sweep`'s.

use xcp_sweep::compute::{Manner, compute};
use xcp_sweep::manifest::{Manifest, Shards};
use xcp_sweep::merge::merge;
use xcp_sweep::work::Tally;
use xcp_sweep::{Sweep, directory};

use crate::cli::{Shard, SweepArguments};
use crate::failure::Failure;
use crate::output::Printer;
use crate::sweep::bar::Bar;
use crate::sweep::one::{again, written};
use crate::terminal::tell;
use crate::{batch, interrupt};

/// Does one shard, unless it is done.
pub fn shard(arguments: &SweepArguments, sweep: &Sweep, which: Shard) -> Result<(), Failure> {
    let dir = arguments.out();
    let jobs = batch::jobs(arguments.jobs);
    let manifest = manifest(arguments, sweep, which, jobs)?;
    directory::begin(dir, &manifest)?;
    let number = which.number - 1;
    if directory::is_done(dir, number) {
        tell(&format!("shard {} of {} is already done", which.number, which.of));
        return Ok(());
    }
    interrupt::listen()?;
    let manner = Manner { jobs, keep_failed: false, asked: &interrupt::asked };
    let runs = manifest.runs(number)?;
    let bar = Bar::new(runs.end - runs.start, 0);
    let mut tick = |tally: &Tally| {
        bar.show(0, tally);
        Ok(())
    };
    let done = compute(&manifest, sweep, number, &manner, &mut tick);
    bar.clear();
    let done = done.map_err(|error| {
        let failure = Failure::from(error);
        let status = failure.status;
        let what = format!("{failure}\nnothing of this shard was kept; to run it: {}", again());
        Failure::with_status(what, status)
    })?;
    directory::store(dir, &done)?;
    tell(&format!(
        "shard {} of {}: {} runs in {}",
        which.number,
        which.of,
        done.runs,
        dir.display()
    ));
    Ok(())
}

/// The manifest that is there if it is of this sweep: how it is cut need not be reckoned again by
/// every shard.
fn manifest(
    arguments: &SweepArguments,
    sweep: &Sweep,
    which: Shard,
    jobs: usize,
) -> Result<Manifest, Failure> {
    if let Some(there) = directory::manifest(arguments.out())?
        && there.sweep == sweep.description
        && there.shards() == which.of
    {
        return Ok(there);
    }
    sweep.scenarios().check(jobs)?;
    Ok(Manifest::new(sweep, Shards::Number(which.of))?)
}

/// Puts the shards' parts together.
pub fn merge_shards(arguments: &SweepArguments, printer: &mut Printer) -> Result<(), Failure> {
    let dir = arguments.out();
    let Some(manifest) = directory::manifest(dir)? else {
        return Err(Failure::new(format!(
            "{} holds no sweep in shards; start one with --shard I/N --out {}",
            dir.display(),
            dir.display()
        )));
    };
    let mut has = |name: &str| Ok(dir.join(name).is_file());
    merge(&manifest, dir, false, &mut has, &mut |name| directory::fetch(dir, name))?;
    directory::tidy(dir)?;
    printer.text(&format!("{} runs of {} shards\n", manifest.sweep.runs, manifest.shards()))?;
    tell(&written(arguments));
    Ok(())
}
