//! Wrong laws and wrong senders, for the programs of `make mutants` and `make robust-parts` and
//! nothing else: without the feature `mutants` there is no trace of them in what is built.
//! `build.rs` makes them of a copy of `engine/`, into which it writes both the right and the wrong
//! lines of [`list`], [`parts`] and [`constants`].

mod constants;
mod edits;
pub mod list;
mod parts;

pub use constants::CONSTANTS;
pub use list::{MUTANTS, Mutant};
pub use parts::PARTS;

unsafe extern "C" {
    fn xcp_mutant_select(mutant: core::ffi::c_int);
}

/// What `make robust-parts` tries: [`PARTS`] and [`CONSTANTS`].
pub fn parts_and_constants() -> impl Iterator<Item = &'static Mutant> {
    PARTS.iter().chain(CONSTANTS)
}

/// What this thread does with routers, senders and receivers is wrong from now on as this one of
/// [`MUTANTS`], [`PARTS`] or [`CONSTANTS`] says; right with `None`.
///
/// # Panics
///
/// If it is of none of these lists.
pub fn select(mutant: Option<&Mutant>) {
    let all = || MUTANTS.iter().chain(parts_and_constants());
    let number = mutant.map_or(0, |mutant| {
        1 + all().position(|m| m.name == mutant.name).expect("one of the lists")
    });
    // SAFETY: sets a number of this thread.
    unsafe { xcp_mutant_select(core::ffi::c_int::try_from(number).expect("a short list")) }
}
