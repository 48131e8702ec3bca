//! What reading a file costs is in proportion to the file. Counted in bytes asked of the allocator,
//! so that it does not depend on the machine; a file of its own because the count is the whole
//! process's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use xcp_scenario::{Overrides, load_with_origins};

static ASKED: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, and a count of all that was ever asked for.
struct Counting;

// SAFETY: what it hands out is the system's; the count allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes asked for while a file of so many variants is read. With a fault in it, it is refused.
fn asked(variants: usize, fault: bool) -> usize {
    let mut text = String::from(
        "duration = \"1s\"\nlink = \
            [{ between = [\"S\", \"D\"], rate = \"1mbit\", delay = \"1ms\", queue = \"xcp\" }]\n\
         flow = [{ from = \"S\", to = \"D\", congestion = \"xcp\" }]\n",
    );
    for i in 0..variants {
        let _ = writeln!(text, "[[variant]]\nname = \"v{i}\"");
    }
    let overrides = if fault { Overrides::none().with("no.such", "1") } else { Overrides::none() };
    let before = ASKED.load(Ordering::Relaxed);
    let loaded = load_with_origins(Path::new("many.toml"), &text, &overrides);
    let asked = ASKED.load(Ordering::Relaxed) - before;
    assert_eq!(
        loaded.map(|l| l.len()).map_err(|e| e.problems().len()),
        if fault { Err(1) } else { Ok(variants) }
    );
    asked
}

/// Eight times the variants cost eight times as much, not 64 times: no variant holds, or is read
/// with, what all the others are.
#[test]
fn variants_cost_what_they_are() {
    for fault in [false, true] {
        let (few, many) = (asked(250, fault), asked(2000, fault));
        assert!(many < few * 10, "{few} bytes for 250 variants, {many} for 2000");
    }
}
