//! How a test says that it was skipped, for want of what, and what was missed.
//!
//! A test that returns early is green, and the harness keeps what it printed to itself. So a skip
//! is written past the capture, and to the file that `XCPNET_SKIPPED` names, from which `make test`
//! sums up. What `XCPNET_REQUIRE` lists (`root,browser`) must be there: then a skip for want of it
//! is a failure.

use std::fmt::Arguments;
use std::fs::OpenOptions;
use std::io::Write as _;

/// Says that a test was skipped: `skipped!("root", "what was missed: {why}")`. The first word is
/// what is wanting, as `XCPNET_REQUIRE` has it.
#[macro_export]
macro_rules! skipped {
    ($needs:literal, $($what:tt)+) => {
        $crate::skipped($needs, format_args!($($what)+))
    };
}

/// See [`skipped!`].
///
/// # Panics
/// If `XCPNET_REQUIRE` lists what is wanting.
pub fn skipped(needs: &str, what: Arguments<'_>) {
    let line = line(needs, &what.to_string());
    // Unlike `eprintln!`, this is not captured.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(path) = std::env::var_os("XCPNET_SKIPPED") {
        // One write of one line: several test programs append to the file at once.
        let file = OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
    let required = std::env::var("XCPNET_REQUIRE").unwrap_or_default();
    assert!(!is_required(needs, &required), "XCPNET_REQUIRE has {needs}: {line}");
}

fn line(needs: &str, what: &str) -> String {
    format!("SKIPPED ({needs}): {}\n", what.trim_end().replace('\n', " | "))
}

fn is_required(needs: &str, required: &str) -> bool {
    required.split(',').any(|one| one.trim() == needs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_required_is_named_whole() {
        assert!(is_required("root", "browser, root"));
        assert!(!is_required("root", "rootless") && !is_required("root", ""));
    }

    #[test]
    fn one_skip_is_one_line() {
        assert_eq!(
            line("clang", "no clang:\nsee there\n"),
            "SKIPPED (clang): no clang: | see there\n"
        );
    }
}
