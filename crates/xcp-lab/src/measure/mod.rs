//! What the recorder sees of a lab: queues, lines, flows.

mod flows;
mod gauges;
mod queues;
mod watch;

pub(crate) use flows::Flows;
pub(crate) use gauges::{Direction, Gauges, Source, packets};
pub(crate) use queues::Seen;
pub(crate) use watch::{Look, Watch};
