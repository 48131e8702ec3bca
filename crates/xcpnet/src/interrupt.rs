//! Ctrl-C: the first asks runs to end where they are, the second ends the program at once.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::failure::{Failure, INTERRUPTED};

static ASKED: AtomicU32 = AtomicU32::new(0);
static TEMPORARY: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Starts listening; to be called once, before the first run. SIGTERM and SIGHUP count as Ctrl-C.
pub fn listen() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        if ASKED.fetch_add(1, Ordering::SeqCst) > 0 {
            if let Ok(Some(dir)) = TEMPORARY.lock().as_deref() {
                // Ending anyway; there is nobody left to hear of an error.
                let _ = std::fs::remove_dir_all(dir);
            }
            std::process::exit(i32::from(INTERRUPTED));
        }
    })
    .map_err(|e| Failure::new(format!("cannot listen for Ctrl-C: {e}")))
}

/// A directory to be deleted when the program ends at once.
pub fn forget_on_exit(dir: &Path) {
    if let Ok(mut temporary) = TEMPORARY.lock() {
        *temporary = Some(dir.to_owned());
    }
}

/// Whether the user wants to stop.
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed) > 0
}
