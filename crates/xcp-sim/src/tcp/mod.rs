//! TCP as real stacks do it, packet by packet: one [`Sender`] and one [`Receiver`] per flow, sans
//! I/O.
//!
//! Time and packets are arguments, packets to send go into an [`Outbox`](crate::packet::Outbox).
//! Segments are numbered from 0 and all but the last of a transfer have the same size, so a
//! sequence number is a segment number. The application is bulk transfer: the sending one always
//! has data until the transfer's end, the receiving one reads at once. What a connection may choose
//! is an enum, not a trait object: `congestion` sets the window, `recovery` finds and repairs
//! losses, `pacing` spreads packets; `sender` only puts them together.
//!
//! Not modelled: data in both directions, ECN, path MTU changes, keep-alive, FIN, reneging
//! receivers, proportional rate reduction (RFC 6937), RACK/TLP (RFC 8985), F-RTO (RFC 5682),
//! HyStart, idle restart (a bulk transfer is never idle).

mod bits;
mod config;
mod congestion;
mod counts;
mod opening;
mod pacing;
mod receiver;
mod recovery;
mod rtt;
mod sender;

pub(crate) use congestion::WORDS as CONGESTIONS;

pub use config::{ReceiverConfig, SenderConfig};
pub use counts::SenderStats;
pub use receiver::Receiver;
pub use sender::Sender;

#[cfg(test)]
mod tests {
    use super::*;

    /// 100,000 flows are to fit into 40 MB, for machines that run a simulation on every core.
    /// Nothing is allocated before something is missing.
    #[test]
    fn a_connection_is_small() {
        let (sender, receiver) = (size_of::<Sender>(), size_of::<Receiver>());
        assert!(sender + receiver <= 400, "{sender} + {receiver} bytes");
    }
}
