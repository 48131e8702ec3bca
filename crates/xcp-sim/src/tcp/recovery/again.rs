//! Retransmissions that are lost, too: beyond RFC 6675, which leaves them to the timeout, Linux
//! finds them. Since 2001 by what was sent after them ("lost retransmit" of its SACK code, after
//! Mathis & Mahdavi's rate halving), today by when (RFC 8985). This is the former.
//!
//! 1. A retransmission is lost if a segment that was sent three or more new segments after it has
//!    arrived.
//! 2. Only the first outstanding segment's is looked at; the others become first in their turn.
//!    Linux looks at all of them.
//! 3. It is sent again at once. In pipe it stands already, as the retransmission that was taken to
//!    be in the network.

use std::collections::VecDeque;

use super::DUP_THRESH;

/// Retransmissions under way: the segment, and the first segment that had never been sent then. In
/// the order of both.
#[derive(Debug, Clone, Default)]
pub(super) struct Again {
    sent: VecDeque<(u64, u64)>,
}

impl Again {
    /// A segment was sent again; `nxt` is the first never sent.
    pub fn sent(&mut self, segment: u64, nxt: u64) {
        self.sent.push_back((segment, nxt));
    }

    /// Everything is to be repaired anew, or nothing any more.
    pub fn clear(&mut self) {
        self.sent.clear();
    }

    /// Whether the retransmission of `una`, the first outstanding segment, is lost: `highest` is
    /// the end of the highest arrival. If so it counts as sent again now.
    pub fn is_lost(&mut self, una: u64, nxt: u64, highest: u64) -> bool {
        while self.sent.front().is_some_and(|&(segment, _)| segment < una) {
            self.sent.pop_front();
        }
        match self.sent.front_mut() {
            Some((segment, then))
                if *segment == una && highest >= *then + u64::from(DUP_THRESH) =>
            {
                *then = nxt;
                true
            }
            _ => false,
        }
    }
}
