//! What both loaders do with maps and libbpf: keep it quiet, copy plain structures in and out.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapMut, PrintLevel};
use xcp_engine::{ForwardHeader, ReturnHeader};

use crate::error::{Error, Result};

/// Structures that kernel programs and loader share: plain words, no padding, no pointers.
///
/// # Safety
/// `#[repr(C)]`, as long as its counterpart in `bpf/`, every bit pattern valid, no padding bytes.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: a word.
unsafe impl Plain for u64 {}

// SAFETY: words.
unsafe impl<const N: usize> Plain for [u64; N] {}

// SAFETY: repr(C), integers in an order that leaves no gap.
unsafe impl Plain for ForwardHeader {}

// SAFETY: likewise.
unsafe impl Plain for ReturnHeader {}

/// The same bytes as another structure: a state of the engine's, which is words to everybody else,
/// as the programs have it.
pub(crate) fn cast<From: Plain, To: Plain>(from: &From) -> To {
    const { assert!(mem::size_of::<From>() == mem::size_of::<To>()) };
    // SAFETY: both are plain and have the same size.
    unsafe { mem::transmute_copy(from) }
}

/// The bytes of a structure.
pub(crate) fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: `Plain` has no padding, so every byte is initialised; the slice lives as long as the
    // reference.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), mem::size_of::<T>()) }
}

/// A structure from the bytes a map holds; `None` if they are too few.
pub(crate) fn from_bytes<T: Plain>(bytes: &[u8]) -> Option<T> {
    // SAFETY: `Plain` accepts any bit pattern; the read is unaligned and within the slice.
    (bytes.len() >= mem::size_of::<T>())
        .then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// The value of an array map's only entry.
pub(crate) fn read_only_entry<T: Plain>(
    map: &impl MapCore,
    flags: MapFlags,
    what: &str,
) -> Result<T> {
    let bytes = map
        .lookup(&0u32.to_ne_bytes(), flags)
        .map_err(|e| Error::because(format_args!("cannot read {what}"), e))?;
    bytes.as_deref().and_then(from_bytes).ok_or_else(|| {
        Error::new(format!("{what} has a layout that this xcpnet does not know"))
            .remedy("it was set up by another version: remove it with that one")
    })
}

/// Sets the value of an array map's only entry.
pub(crate) fn write_only_entry<T: Plain>(
    map: &impl MapCore,
    flags: MapFlags,
    value: &T,
    what: &str,
) -> Result<()> {
    map.update(&0u32.to_ne_bytes(), bytes_of(value), flags)
        .map_err(|e| Error::because(format_args!("cannot write {what}"), e))
}

/// What libbpf tells while somebody listens to it.
static HEARD: Mutex<Option<String>> = Mutex::new(None);

/// As much of it as is kept; a verifier's log can be of many megabytes, and its end says why.
const HEARD_BYTES: usize = 1 << 20;

/// libbpf tells on stderr what it tries; errors come back as values, and `XCPNET_LIBBPF=1` brings
/// the verifier's log for those who look for it.
pub(crate) fn hush() {
    let wanted = tells_stderr() || heard().is_some();
    libbpf_rs::set_print(wanted.then_some((PrintLevel::Warn, tell)));
}

/// What a function returns, and what libbpf told meanwhile (on other threads, too: it has one ear
/// for the process).
pub(crate) fn overhear<T>(function: impl FnOnce() -> T) -> (T, String) {
    *heard() = Some(String::new());
    hush();
    let result = function();
    let told = heard().take().unwrap_or_default();
    hush();
    (result, told)
}

fn tells_stderr() -> bool {
    std::env::var_os("XCPNET_LIBBPF").is_some()
}

fn heard() -> MutexGuard<'static, Option<String>> {
    HEARD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tell(_: PrintLevel, text: String) {
    use std::io::Write as _;
    if tells_stderr() {
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    if let Some(heard) = heard().as_mut() {
        if heard.len() + text.len() > HEARD_BYTES {
            heard.clear();
        }
        heard.push_str(&text);
    }
}

/// A handle of a map that outlives its skeleton.
pub(crate) fn handle(map: &MapMut<'_>) -> Result<MapHandle> {
    MapHandle::try_from(map).map_err(|e| Error::because("cannot hold a map", e))
}
