//! The summary as scripts read it: one JSON object per run, one run per line.

use std::io::{self, Write};

use xcp_scenario::run::Run;

/// Writes one line per run, in order, each ending in a newline. Numbers are written in full. A run
/// of many flows makes a long line: it is never held as a whole, and `out` need not be buffered.
///
/// # Errors
/// The writer's.
pub fn write(runs: &[Run], out: impl Write) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    for run in runs {
        serde_json::to_writer(&mut out, &run.summary)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}
