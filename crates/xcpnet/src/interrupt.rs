//! Ctrl-C: the first asks runs to end where they are, the second ends the program at once.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

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
            #[cfg(target_os = "linux")]
            xcp_lab::leave_at_once();
            std::process::exit(i32::from(INTERRUPTED));
        }
    })
    .map_err(|e| Failure::new(format!("cannot listen for Ctrl-C: {e}")))
}

/// Takes the end of standard input for the first Ctrl-C. Whoever started this program and holds the
/// other end may have been killed; then nobody is left to press anything.
pub fn listen_to_end_of_input() -> Result<(), Failure> {
    let wait = || {
        // What is written there is not looked at; what cannot be read has ended, too.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = ASKED.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst);
    };
    thread::Builder::new()
        .name("end of input".into())
        .spawn(wait)
        .map(drop)
        .map_err(|e| Failure::new(format!("cannot listen to standard input: {e}")))
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
