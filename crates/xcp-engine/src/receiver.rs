//! An XCP receiver's sum of feedback (engine/receiver.h). When to acknowledge is the transport's
//! business.

use crate::ffi;
use crate::header::{ForwardHeader, ReturnHeader, WireFormat};

/// The feedback that one connection's receiver has summed and not returned yet.
#[derive(Debug, Clone)]
pub struct Receiver([u64; ffi::RECEIVER_WORDS]);

impl Receiver {
    /// A receiver of a connection with this format.
    pub fn new(format: WireFormat) -> Receiver {
        let mut state = [0; ffi::RECEIVER_WORDS];
        // SAFETY: shim.c asserts that struct xcp_receiver has RECEIVER_WORDS words.
        unsafe {
            ffi::xcp_shim_receiver_init(&mut state, u32::from(format == WireFormat::Classic))
        };
        Receiver(state)
    }

    /// A packet with a header came. Headers that are absent or of the other format are ignored.
    #[inline]
    pub fn data(&mut self, header: &ForwardHeader) {
        self.data_segments(header, 1);
    }

    /// As [`Receiver::data`], for `segments` packets that the network card joined into one that
    /// kept one header.
    #[inline]
    pub fn data_segments(&mut self, header: &ForwardHeader, segments: u32) {
        // SAFETY: `self.0` was initialised by `new`; `header` is valid for the call.
        unsafe { ffi::xcp_shim_receiver_data(&mut self.0, header, segments) }
    }

    /// [`Receiver::data`] and [`Receiver::returned`] in one call, for who acknowledges every
    /// packet.
    #[inline]
    pub fn answer(&mut self, header: &ForwardHeader) -> ReturnHeader {
        // SAFETY: as in `data_segments`.
        unsafe { ffi::xcp_shim_receiver_answer(&mut self.0, header) }
    }

    /// The header of an acknowledgement that leaves now: the sum so far; what the word cannot
    /// express is kept for the next one.
    #[inline]
    pub fn returned(&mut self) -> ReturnHeader {
        self.returned_segments(1)
    }

    /// As [`Receiver::returned`], for an acknowledgement in a packet that is cut into so many
    /// segments: each carries this header, which tells its part.
    #[inline]
    pub fn returned_segments(&mut self, segments: u32) -> ReturnHeader {
        // SAFETY: as in `data_segments`.
        unsafe { ffi::xcp_shim_receiver_return(&mut self.0, segments) }
    }
}
