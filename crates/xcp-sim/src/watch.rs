//! Who watches a run closely: its series as far as they have come, and the packets where they are.
//! What is to be made of either is the watcher's business. Watching changes nothing: a run that is
//! watched gives the same bytes.

use std::ops::ControlFlow;

use xcp_model::record::Recorder;
use xcp_model::run::Observer;
use xcp_model::units::Nanos;

use crate::events::NEVER;
use crate::view::View;

/// Watches a run, and may end it as any [`Observer`] may.
pub trait Watcher: Observer {
    /// When it wants to look at the network, later than the last time; [`NEVER`] if not again.
    fn next_look(&self) -> Nanos {
        NEVER
    }

    /// That time has come.
    fn look(&mut self, _now: Nanos, _network: &mut View<'_, '_>) {}

    /// A sampling interval has ended, and the recorder has looked.
    fn sampled(&mut self, _now: Nanos, _recorder: &Recorder<'_>) {}
}

/// An observer as a watcher that looks at nothing.
pub(crate) struct Unwatched<'a>(pub &'a mut dyn Observer);

impl Observer for Unwatched<'_> {
    fn progress(&mut self, now: Nanos) -> ControlFlow<()> {
        self.0.progress(now)
    }
}

impl Watcher for Unwatched<'_> {}
