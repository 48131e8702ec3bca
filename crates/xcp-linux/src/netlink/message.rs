//! Netlink messages as bytes: a header, a fixed structure and attributes, which may hold attributes
//! (netlink(7), rtnetlink(7)). What they mean is the other files' business. All numbers are in the
//! machine's own byte order.

/// Length of `struct nlmsghdr`.
pub const HEADER: usize = 16;

/// The kernel's `NLA_ALIGN`.
const fn aligned(length: usize) -> usize {
    (length + 3) & !3
}

/// A request under construction.
#[derive(Debug)]
pub struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// A message of this kind (`RTM_...`) with the fixed structure that its kind wants.
    /// `NLM_F_REQUEST` is added.
    pub fn new(kind: u16, flags: u16, fixed: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend(0u32.to_ne_bytes()); // the length, when all is there
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((flags | libc::NLM_F_REQUEST as u16).to_ne_bytes());
        bytes.extend([0; 8]); // sequence number, when it is sent; the port is the kernel's business
        bytes.extend(fixed);
        bytes.resize(aligned(bytes.len()), 0);
        Self { bytes }
    }

    /// Has the kernel say so when it has done it.
    pub fn ask_for_answer(&mut self) {
        let flags = short(&self.bytes, 6).unwrap_or_default() | libc::NLM_F_ACK as u16;
        self.bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    }

    /// Adds an attribute.
    pub fn attribute(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        self.nested(kind, |inner| inner.bytes.extend(value))
    }

    /// Adds a number.
    pub fn number(&mut self, kind: u16, value: u32) -> &mut Self {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// Adds a text, with the zero that ends it.
    pub fn text(&mut self, kind: u16, value: &str) -> &mut Self {
        self.nested(kind, |inner| {
            inner.bytes.extend(value.as_bytes());
            inner.bytes.push(0);
        })
    }

    /// Adds an attribute that holds what `fill` writes.
    pub fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.bytes.len();
        self.bytes.extend([0; 2]);
        self.bytes.extend(kind.to_ne_bytes());
        fill(self);
        // Attributes are far below 64 KB: what the callers put in them are names, addresses and
        // small structures.
        let length = (self.bytes.len() - start) as u16;
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.bytes.resize(aligned(self.bytes.len()), 0);
        self
    }

    /// Adds bytes without a header: the fixed structure of a message within an attribute, a
    /// multiple of 4 in length.
    pub fn plain(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend(bytes);
        self
    }

    /// The finished message.
    pub fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = self.bytes.len() as u32;
        self.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }
}

/// A message that was received.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// `RTM_...`, `NLMSG_...`
    pub kind: u16,
    /// `NLM_F_...`
    pub flags: u16,
    /// That of the request which it answers.
    pub sequence: u32,
    /// What follows the header.
    pub payload: &'a [u8],
}

/// The messages of a datagram. Ends at the first that is not whole.
pub fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = number(bytes, 0)? as usize;
        let payload = bytes.get(HEADER..length)?;
        let message = Message {
            kind: short(bytes, 4)?,
            flags: short(bytes, 6)?,
            sequence: number(bytes, 8)?,
            payload,
        };
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some(message)
    })
}

/// Attributes with their kinds, less the flags in these. Ends at the first that is not whole.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    const FLAGS: u16 = (libc::NLA_F_NESTED | libc::NLA_F_NET_BYTEORDER) as u16;
    std::iter::from_fn(move || {
        let length = usize::from(short(bytes, 0)?);
        let kind = short(bytes, 2)? & !FLAGS;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The value of the first attribute of a kind.
pub fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(k, _)| *k == kind).map(|(_, value)| value)
}

/// A 16-bit number at an offset.
pub fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// A 32-bit number at an offset.
pub fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A text up to the zero that ends it.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(values in proptest::collection::vec((0u16..0x3fff, proptest::collection::vec(any::<u8>(), 0..40)), 0..20)) {
            let mut request = Request::new(16, 0x400, &[1, 2, 3, 4]);
            for (kind, value) in &values {
                request.attribute(*kind, value);
            }
            request.nested(7, |inner| {
                for (kind, value) in &values {
                    inner.attribute(*kind, value);
                }
            });
            let bytes = request.finish(99);
            let read: Vec<_> = messages(&bytes).collect();
            prop_assert_eq!(read.len(), 1);
            prop_assert_eq!((read[0].kind, read[0].flags, read[0].sequence), (16, 0x401, 99));
            let body = &read[0].payload[4..];
            let all: Vec<_> = attributes(body).map(|(k, v)| (k, v.to_vec())).collect();
            prop_assert_eq!(&all[..values.len()], &values[..]);
            let inner: Vec<_> = attributes(&all[values.len()].1).map(|(k, v)| (k, v.to_vec())).collect();
            prop_assert_eq!(inner, values);
        }

        #[test]
        fn no_bytes_make_the_readers_panic_or_go_on_for_ever(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(messages(&bytes).count() <= bytes.len());
            prop_assert!(attributes(&bytes).count() <= bytes.len());
        }
    }
}
