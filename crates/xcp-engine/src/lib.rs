//! `engine/` for Rust: XCP's router law, sender, receiver and wire formats, the very C headers that
//! also run in the kernel.
//!
//! This crate gives them types, units and checked settings and adds no behaviour: a change to the
//! law is made in `engine/`. It knows nothing of queues, links or TCP; time (nanoseconds) and
//! packets are arguments. Every call is one static foreign call, without allocation.
//!
//! ```
//! use xcp_engine::{Receiver, Router, RouterConfig, Sendable, Sender, SenderConfig, WireFormat};
//!
//! let mut sender = Sender::new(&SenderConfig::new(WireFormat::Extended, 1500));
//! let mut router = Router::new(&RouterConfig::xcp(1_250_000), 0, 1)?;
//! let mut receiver = Receiver::new(WireFormat::Extended);
//!
//! let mut header = sender.header(0, 100_000_000, &Sendable::UNLIMITED);
//! router.arrival(1_000_000, 1500, &header, 0);
//! router.departure(2_000_000, 1500, &mut header, 0);
//! receiver.data(&header);
//! sender.feedback(100_000_000, &receiver.returned(), 100_000_000, true);
//! assert!(sender.marked());
//! # Ok::<(), xcp_engine::ConfigError>(())
//! ```

mod ffi;
mod header;
mod law;
#[cfg(feature = "mutants")]
pub mod mutants;
mod options;
mod policer;
mod receiver;
mod robust;
mod robust_sender;
mod router;
mod sender;

pub use ffi::{
    POLICED_SET_WORDS, POLICER_WORDS, RECEIVER_WORDS, ROBUST_SENDER_WORDS, ROBUST_WORDS,
    ROUTER_WORDS, SENDER_WORDS,
};
pub use header::{ForwardHeader, ReturnHeader, Rounding, WAIT_MAX, WireFormat, flags};
pub use options::{
    EXTENDED_EXID, EXTENDED_KIND, EXTENDED_LENGTH_MAX, ExtendedOption, FoundOptions, find_options,
    read_classic_forward, read_classic_return, read_extended, write_classic_forward,
    write_classic_return, write_extended,
};
pub use policer::{Passage, Policer, PolicerConfig, PolicerState};
pub use receiver::Receiver;
pub use robust::{Other, RobustRouter};
pub use robust_sender::{Answer, Bound, RobustSender, RobustSenderState};
pub use router::{Router, bottleneck_id};
pub use sender::{Sendable, Sender, SenderConfig};
pub use xcp_law::{
    CapacityForXcp, CapacityKnown, ConfigError, Control, Gain, Input, Interval, Preset,
    RouterConfig, RouterState, Shuffle, Spare, Tcp,
};

/// The C functions below the public interface, for this crate's own tests of arithmetic.
#[doc(hidden)]
pub mod exact;
