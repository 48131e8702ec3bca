//! The summary as scripts read it: one JSON object per run, one run per line.

use xcp_scenario::run::Run;

/// One line per run, in order, each ending in a newline. Numbers are written in full.
#[must_use]
pub fn lines(runs: &[Run]) -> String {
    let mut out = String::new();
    for run in runs {
        out.push_str(&serde_json::to_string(&run.summary).expect("a summary has string keys only"));
        out.push('\n');
    }
    out
}
