//! What the recorder sees of a lab: queues, lines, flows.

mod flows;
mod queues;
