//! Wrong laws and wrong senders, for the program of `make mutants` and nothing else: without the
//! feature `mutants` there is no trace of them in what is built. `build.rs` makes them of a copy of
//! `engine/`, into which it writes both the right and the wrong lines of [`list`].

pub mod list;

pub use list::{MUTANTS, Mutant};

unsafe extern "C" {
    fn xcp_mutant_select(mutant: core::ffi::c_int);
}

/// What this thread does with routers, senders and receivers is wrong from now on as that one of
/// [`MUTANTS`] says; right with `None`.
pub fn select(mutant: Option<usize>) {
    let number = mutant.map_or(0, |index| index + 1);
    // SAFETY: sets a number of this thread.
    unsafe { xcp_mutant_select(core::ffi::c_int::try_from(number).expect("a short list")) }
}
