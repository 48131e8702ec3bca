//! XCP's TCP options in raw bytes (engine/options.h): finding, reading, writing.

use crate::ffi;
use crate::header::{ForwardHeader, ReturnHeader};

/// Kind of the extended option (shared by all experiments, RFC 6994).
pub const EXTENDED_KIND: u8 = 254;
/// The extended option's experiment identifier. It is not registered with IANA.
pub const EXTENDED_EXID: u16 = 0x5843;
/// The longest extended option, bytes.
pub const EXTENDED_LENGTH_MAX: usize = 26;

/// TCP's option block is at most this long (RFC 9293: 15 words of header less the fixed 5).
const BLOCK_MAX: usize = 40;

/// Where options begin, in bytes from the start of the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FoundOptions {
    /// The extended option.
    pub extended: Option<usize>,
    /// The classic forward option.
    pub classic_forward: Option<usize>,
    /// The classic return option.
    pub classic_return: Option<usize>,
    /// A length was 0, 1 or past the end: nothing after it was looked at.
    pub malformed: bool,
}

/// Looks through a raw TCP option block; bytes beyond the 40th are ignored. Of several options of a
/// sort the first counts.
pub fn find_options(block: &[u8]) -> FoundOptions {
    let mut found = ffi::Options::default();
    let length = block.len().min(BLOCK_MAX) as u32;
    // SAFETY: the function reads at most `length` bytes from `block` and writes one Options.
    unsafe { ffi::xcp_shim_options_find(block.as_ptr(), length, &mut found) };
    let at = |offset: u8| (offset != 0xff).then_some(usize::from(offset));
    FoundOptions {
        extended: at(found.extended),
        classic_forward: at(found.classic_forward),
        classic_return: at(found.classic_return),
        malformed: found.malformed != 0,
    }
}

/// An extended option's contents. Without either header it is an offer, as SYNs carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtendedOption {
    /// Forward header; default (absent) if the option has none.
    pub forward: ForwardHeader,
    /// Return header; default (absent) if the option has none.
    pub returned: ReturnHeader,
    /// The option carries bottleneck ids; in an offer: the sender understands them.
    pub ids: bool,
}

/// Reads the extended option of a block; `None` where [`find_options`] finds none.
pub fn read_extended(block: &[u8]) -> Option<ExtendedOption> {
    let at = find_options(block).extended?;
    let mut out = ffi::Extended::default();
    // SAFETY: find_options vouches for an option of the length its flags imply at `at`, within
    // `block`; the function reads no further.
    unsafe { ffi::xcp_shim_extended_read(block[at..].as_ptr(), &mut out) };
    Some(ExtendedOption { forward: out.forward, returned: out.returned, ids: out.ids != 0 })
}

/// Writes an extended option to the front of `buffer` and returns its length. Headers that are
/// absent are left out.
pub fn write_extended(buffer: &mut [u8; EXTENDED_LENGTH_MAX], option: &ExtendedOption) -> usize {
    // SAFETY: the function writes at most EXTENDED_LENGTH_MAX bytes.
    unsafe {
        ffi::xcp_shim_extended_write(
            buffer.as_mut_ptr(),
            &option.forward,
            &option.returned,
            u32::from(option.ids),
        ) as usize
    }
}

/// Reads a classic forward option (kind 14).
pub fn read_classic_forward(option: &[u8; 8]) -> ForwardHeader {
    let mut h = ForwardHeader::default();
    // SAFETY: reads 8 bytes.
    unsafe { ffi::xcp_shim_classic_read_forward(option.as_ptr(), &mut h) };
    h
}

/// A classic forward option (kind 14).
pub fn write_classic_forward(header: &ForwardHeader) -> [u8; 8] {
    let mut option = [0; 8];
    // SAFETY: writes 8 bytes.
    unsafe { ffi::xcp_shim_classic_write_forward(option.as_mut_ptr(), header) };
    option
}

/// Reads a classic return option (kind 15).
pub fn read_classic_return(option: &[u8; 4]) -> ReturnHeader {
    let mut h = ReturnHeader::default();
    // SAFETY: reads 4 bytes.
    unsafe { ffi::xcp_shim_classic_read_return(option.as_ptr(), &mut h) };
    h
}

/// A classic return option (kind 15).
pub fn write_classic_return(header: &ReturnHeader) -> [u8; 4] {
    let mut option = [0; 4];
    // SAFETY: writes 4 bytes.
    unsafe { ffi::xcp_shim_classic_write_return(option.as_mut_ptr(), header) };
    option
}
