//! `xcpnet sweep`: a scenario over a grid of settings, variants and seeds. What a sweep is and how
//! it is done is `xcp-sweep`'s; here is what is typed and told.

mod bar;
mod finish;
mod one;
mod shard;

use xcp_scenario::read_text;
use xcp_sweep::Sweep;

use crate::cli::SweepArguments;
use crate::failure::Failure;
use crate::output::Printer;

/// Runs what was asked for, or what is missing of it.
pub fn sweep(arguments: &SweepArguments, printer: &mut Printer) -> Result<(), Failure> {
    let Some(file) = &arguments.file else { return shard::merge_shards(arguments, printer) };
    let text = read_text(file, &arguments.settings)?;
    let seeds = arguments.seeds.as_deref();
    let sweep = Sweep::typed(file, &text, &arguments.settings, seeds, &arguments.variants)?;
    match arguments.shard {
        Some(which) => shard::shard(arguments, &sweep, which),
        None => one::one(arguments, &sweep, printer),
    }
}
