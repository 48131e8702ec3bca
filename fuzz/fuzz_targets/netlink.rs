//! Netlink answers: messages and attributes lie where they were said to, one after the other, and
//! what is written is read back.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/xcp-linux/src/netlink/message.rs"]
#[expect(dead_code, reason = "the file is the kernel's side, too, of which only a part is fuzzed")]
mod message;

use message::{Request, attribute, attributes, messages, text};

/// A part of a whole, behind what came before.
fn behind(whole: &[u8], end: &mut usize, part: &[u8]) {
    let at = part.as_ptr() as usize - whole.as_ptr() as usize;
    assert!(part.is_empty() || (at >= *end && at + part.len() <= whole.len()));
    if !part.is_empty() {
        *end = at + part.len();
    }
}

fn walk(bytes: &[u8], depth: u8) {
    let mut end = 0;
    for (kind, value) in attributes(bytes) {
        behind(bytes, &mut end, value);
        assert!(attribute(bytes, kind).is_some());
        assert!(!text(value).contains('\0'));
        if depth > 0 {
            walk(value, depth - 1);
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut end = 0;
    for message in messages(data) {
        behind(data, &mut end, message.payload);
        walk(message.payload, 3);
        for fixed in [4, 12, 16, 20] {
            walk(message.payload.get(fixed..).unwrap_or_default(), 3);
        }
    }
    let mut request = Request::new(1, 2, &[]);
    for value in data.chunks(97) {
        request.attribute(u16::from(value[0]), value);
    }
    let written = request.finish(7);
    let read: Vec<u8> = messages(&written)
        .flat_map(|m| attributes(m.payload))
        .flat_map(|(_, value)| value.to_vec())
        .collect();
    assert_eq!(read, data);
});
