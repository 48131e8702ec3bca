//! Backend 1: a packet-level discrete-event simulator. Takes a resolved scenario, returns a run. Knows nothing of files, reports or Linux.

pub mod packet;
pub mod tcp;
