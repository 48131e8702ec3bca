//! The policer before a router's law (engine/policer.h): takes from senders that lie whatever they
//! would gain by it.

use std::fmt;

use crate::ffi::{self, POLICED_SET_WORDS, POLICER_WORDS};
use crate::header::ForwardHeader;
use crate::router::Router;

/// Settings of a policer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicerConfig {
    /// Flows that its table is good for, 1 to 2^20: the table has as many sets, rounded up to a
    /// power of two, of [`PolicerConfig::SET_BYTES`] each.
    pub flows: u32,
    /// The longest round-trip time that paths have, ns: at least 1. No claim beyond it is believed.
    pub longest_rtt_ns: u64,
    /// Of the table's hashes: a secret, or senders choose whose place they take.
    pub seed: u64,
}

impl PolicerConfig {
    /// What it is unless said otherwise: 4096 flows, round trips of up to a second.
    pub const DEFAULT: Self = Self { flows: 4096, longest_rtt_ns: 1_000_000_000, seed: 0 };
    /// Most flows that a table can be made for.
    pub const FLOWS_MAX: u32 = 1 << 20;
    /// Memory that a flow takes, bytes.
    pub const SET_BYTES: usize = POLICED_SET_WORDS * 8;

    /// Sets of the table.
    pub fn sets(&self) -> u32 {
        self.flows.clamp(1, Self::FLOWS_MAX).next_power_of_two()
    }
}

/// Packets of one flow that come together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    /// Time at which they arrive, ns.
    pub now_ns: u64,
    /// Whose they are: flows with different keys are policed apart.
    pub key: u64,
    /// All of them on the wire.
    pub bytes: u64,
    /// How many there are, at least 1.
    pub segments: u32,
    /// Bytes that wait before them.
    pub queue_bytes: u64,
}

/// What a policer has done since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PolicerState {
    /// What a flow may send, bit/s.
    pub share_bps: f64,
    /// Flows that there are, by the time that they use.
    pub flows: f64,
    /// Packets refused since it was made.
    pub refused: u64,
    /// Bytes of the refused packets.
    pub refused_bytes: u64,
    /// Packets whose claim was not believed, or not all of it.
    pub corrected: u64,
    /// Packets for whose flow the table had no place.
    pub crowded: u64,
}

/// The policer of one link.
#[derive(Clone)]
pub struct Policer {
    words: [u64; POLICER_WORDS],
    table: Vec<[u64; POLICED_SET_WORDS]>,
}

impl fmt::Debug for Policer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policer")
            .field("sets", &self.table.len())
            .field("state", &self.state())
            .finish()
    }
}

impl Policer {
    /// A policer for a router that has just been made, or has got another law.
    pub fn new(config: &PolicerConfig, router: &mut Router) -> Self {
        let mut words = [0; POLICER_WORDS];
        // SAFETY: both are valid for the call; ffi.rs mirrors the C structs' sizes.
        unsafe {
            ffi::xcp_shim_policer_init(
                &mut words,
                router.words_mut(),
                config.longest_rtt_ns.max(1),
                config.seed,
            )
        };
        Self { words, table: vec![[0; POLICED_SET_WORDS]; config.sets() as usize] }
    }

    /// Packets come to the router; `false`: they are refused, and the law must not see them. Else
    /// their header says no more than is believed, and they go on to [`Router::arrival`].
    #[inline]
    pub fn admits(
        &mut self,
        router: &mut Router,
        packets: &Passage,
        header: &mut ForwardHeader,
    ) -> bool {
        let packets = ffi::Passage {
            now: packets.now_ns,
            key: packets.key,
            bytes: packets.bytes,
            backlog: packets.queue_bytes,
            segments: u64::from(packets.segments.max(1)),
        };
        // SAFETY: all pointers are valid for the call; the table has as many sets as it is said to
        // have.
        let refused = unsafe {
            ffi::xcp_shim_policer_packet(
                &mut self.words,
                router.words_mut(),
                self.table.as_mut_ptr(),
                self.table.len() as u32,
                &packets,
                header,
            )
        };
        refused == 0
    }

    /// What it has done.
    pub fn state(&self) -> PolicerState {
        Self::state_of(&self.words)
    }

    /// The same, of a state as it lies in memory, here and in a kernel program's map: `struct
    /// xcp_policer` of engine/policer.h.
    pub fn state_of(words: &[u64; POLICER_WORDS]) -> PolicerState {
        let mut v = ffi::PolicerView::default();
        // SAFETY: reads one policer, writes one view.
        unsafe { ffi::xcp_shim_policer_view(words, &mut v) };
        PolicerState {
            share_bps: v.share as f64 * 8.0 / 1_048_576.0,
            flows: v.flows as f64 / 1_048_576.0,
            refused: v.refused,
            refused_bytes: v.refused_bytes,
            corrected: v.corrected,
            crowded: v.crowded,
        }
    }

    /// The key of flows that more than one word tells apart.
    pub fn key(&self, words: &[u64]) -> u64 {
        let join = |key, &word| ffi::xcp_shim_policer_join(&self.words, key, word);
        words.split_first().map_or(0, |(first, others)| others.iter().fold(*first, join))
    }

    /// The table, as it lies in memory.
    pub fn table(&self) -> &[[u64; POLICED_SET_WORDS]] {
        &self.table
    }

    /// The state without the table, as it lies in memory.
    pub fn words(&self) -> &[u64; POLICER_WORDS] {
        &self.words
    }
}
