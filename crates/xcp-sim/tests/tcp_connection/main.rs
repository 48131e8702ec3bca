//! TCP's two ends over a deterministic pipe.

mod closed_forms;
mod losses;
mod pipe;
mod properties;
