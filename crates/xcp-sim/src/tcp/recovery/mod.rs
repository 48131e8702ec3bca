//! Finding and repairing losses. Each rule has its own file; they share the phase of the connection
//! and the scoreboard, which exists only while something seems to be missing.
//!
//! What all of them do:
//! 1. A retransmission timeout takes everything outstanding for lost and repairs it from the front
//!    as the window opens (go-back-N); what SACK has reported is kept and skipped. RFC 2018 §8
//!    would discard it in case the receiver reneged; these receivers do not, Linux keeps it too,
//!    and RFC 6675 §5.1 describes the debate.
//! 2. After a timeout no fast retransmit until everything then outstanding is acknowledged (RFC
//!    6582 §4, RFC 6675 §5.1). Reno has this too, though RFC 5681 does not ask for it: without it
//!    the duplicates of go-back-N start it over and over (ns-2's `bugfix_`).
//! 3. Limited transmit (RFC 3042) always.

mod again;
mod newreno;
mod reno;
mod sack;
mod scoreboard;

use again::Again;
use scoreboard::Scoreboard;

use xcp_model as model;
use xcp_model::units::Nanos;

/// Duplicate ACKs that mean a loss (RFC 5681 §3.2, RFC 6675's DupThresh).
const DUP_THRESH: u32 = 3;

/// What the connection is doing about losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing: no sign that anything outstanding is missing.
    Open,
    /// Nothing yet: duplicate ACKs or SACK blocks have been seen (Linux's name for it).
    Disorder,
    /// Fast recovery, until `Repair::point` is acknowledged.
    Fast,
    /// After a timeout, until `Repair::point` is acknowledged.
    Loss,
}

/// What the sender must do about an ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing special.
    Go,
    /// Fast recovery begins: reduce the window, retransmit the first segment.
    Enter,
    /// NewReno's partial acknowledgement: retransmit the first segment.
    Partial {
        /// Whether the retransmission timer starts anew.
        restart_timer: bool,
    },
    /// Fast recovery is over.
    Leave {
        /// Whether the window must be brought down to what is outstanding, lest all of it leaves at
        /// once.
        avoid_burst: bool,
    },
}

/// The next segment to send, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    New,
    Again(u64),
    Rescue(u64),
}

/// State of loss recovery.
#[derive(Debug, Clone)]
pub(super) struct Recovery {
    /// Echoed timestamp of the last ACK that advanced.
    last_echo: Nanos,
    /// What is known of what is missing; `None` exactly while the phase is `Open`, which is all of
    /// the life of most connections.
    repair: Option<Box<Repair>>,
    /// End of what was outstanding at the last timeout (Reno) or the last timeout or recovery
    /// (NewReno and ns-2's Reno: `recover`): below it duplicate ACKs prove nothing.
    guard: u64,
    phase: Phase,
    /// `SackLinux` is `Sack` here, `RenoNs2` is `Reno`.
    kind: model::Recovery,
    /// Whether Reno's fast retransmit comes once for what is outstanding.
    once: bool,
    /// Whether lost retransmissions are found.
    finds_again: bool,
    /// Segments found lost, so far, but for what the board of this repair has found; wraps.
    found: u32,
}

/// What is known of what is missing.
#[derive(Debug, Clone, Default)]
pub(super) struct Repair {
    /// Without SACK: packets known or taken to have left the network though not acknowledged.
    /// Limited transmit's two in `Disorder`, Reno's inflation of the window in `Fast`, negative
    /// where NewReno's deflation says so.
    credit: i64,
    /// End of what was outstanding when the phase began.
    point: u64,
    /// Duplicate ACKs in a row.
    duplicates: u32,
    /// Partial ACKs of this recovery.
    partials: u32,
    board: Scoreboard,
    again: Again,
}

impl Recovery {
    pub fn new(kind: model::Recovery) -> Self {
        let finds_again = kind == model::Recovery::SackLinux;
        let once = kind == model::Recovery::RenoNs2;
        let kind = match kind {
            model::Recovery::SackLinux => model::Recovery::Sack,
            model::Recovery::RenoNs2 => model::Recovery::Reno,
            other => other,
        };
        Recovery {
            last_echo: 0,
            repair: None,
            guard: 0,
            phase: Phase::Open,
            kind,
            once,
            finds_again,
            found: 0,
        }
    }

    /// Whether nothing outstanding seems to be missing.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Whether losses are being repaired.
    pub fn repairing(&self) -> bool {
        matches!(self.phase, Phase::Fast | Phase::Loss)
    }

    /// Whether that is fast recovery's business.
    pub fn fast(&self) -> bool {
        self.phase == Phase::Fast
    }

    pub fn sack(&self) -> bool {
        self.kind == model::Recovery::Sack
    }

    /// State of repairs, to be changed: something is amiss.
    fn repair(&mut self) -> &mut Repair {
        if self.phase == Phase::Open {
            self.phase = Phase::Disorder;
        }
        self.repair.get_or_insert_default()
    }

    /// Packets taken to be in the network, NewReno's deflation left out.
    pub fn in_network(&self, una: u64, nxt: u64) -> u64 {
        self.repair
            .as_ref()
            .map_or(nxt - una, |r| (r.board.pipe(una, nxt) as i64 - r.credit.max(0)).max(0) as u64)
    }

    /// What is compared with the window before sending: packets taken to be in the network, and
    /// NewReno's deflation of the window.
    pub fn outstanding(&self, una: u64, nxt: u64) -> u64 {
        self.repair
            .as_ref()
            .map_or(nxt - una, |r| (r.board.pipe(una, nxt) as i64 - r.credit).max(0) as u64)
    }

    /// Lost segments not retransmitted yet.
    pub fn lost_unrepaired(&self, una: u64) -> u64 {
        self.repair.as_ref().map_or(0, |r| r.board.lost_unrepaired(una))
    }

    /// Segments found lost, so far: counted when found, not when repaired, retransmissions that
    /// are lost again, too; not those that a timeout takes for lost. Wraps.
    pub fn found(&self) -> u32 {
        self.found.wrapping_add(self.repair.as_ref().map_or(0, |r| r.board.found() as u32))
    }

    /// Segments reported by SACK and not acknowledged.
    #[inline(always)]
    pub fn reported(&self) -> u64 {
        self.repair.as_ref().map_or(0, |r| r.board.count())
    }

    /// The cumulative acknowledgement moved while `Open`: all there is to do about that.
    #[inline(always)]
    pub fn advanced_open(&mut self, echo: Nanos) {
        debug_assert!(self.phase == Phase::Open && self.repair.is_none());
        self.last_echo = echo;
    }

    /// The cumulative acknowledgement moved from `old` to `una`.
    pub fn advanced(&mut self, old: u64, una: u64, echo: Nanos, cwnd: u32) -> Step {
        self.last_echo = echo;
        let Some(repair) = &mut self.repair else { return Step::Go };
        repair.board.advance(old, una);
        repair.duplicates = 0;
        let mut step = Step::Go;
        match self.phase {
            Phase::Open | Phase::Disorder => repair.credit = 0,
            Phase::Loss => {
                if una >= repair.point {
                    self.phase = Phase::Disorder;
                }
            }
            Phase::Fast => {
                step = match self.kind {
                    model::Recovery::Reno | model::Recovery::RenoNs2 => {
                        Step::Leave { avoid_burst: false }
                    }
                    model::Recovery::NewRenoImpatient => {
                        repair.newreno_advanced(una - old, una, cwnd, false)
                    }
                    model::Recovery::NewRenoSlowButSteady => {
                        repair.newreno_advanced(una - old, una, cwnd, true)
                    }
                    model::Recovery::Sack | model::Recovery::SackLinux => repair.sack_advanced(una),
                };
                self.found =
                    self.found.wrapping_add(u32::from(matches!(step, Step::Partial { .. })));
                if let Step::Leave { .. } = step {
                    self.phase = Phase::Disorder;
                    repair.credit = 0;
                    repair.partials = 0;
                    repair.again.clear();
                }
            }
        }
        if self.phase == Phase::Disorder && repair.board.is_empty() {
            debug_assert_eq!(
                repair.board.pipe(una, una + 9),
                9,
                "nothing that matters is forgotten"
            );
            self.phase = Phase::Open;
            self.found = self.found.wrapping_add(repair.board.found() as u32);
            self.repair = None;
        }
        step
    }

    /// An ACK that does not advance while data is outstanding; `news`: it carries SACK information
    /// not seen before.
    pub fn duplicate(&mut self, una: u64, nxt: u64, echo: Nanos, news: bool) -> Step {
        let lost = match self.kind {
            model::Recovery::Reno | model::Recovery::RenoNs2 => self.reno_duplicate(una, echo),
            model::Recovery::NewRenoImpatient | model::Recovery::NewRenoSlowButSteady => {
                self.newreno_duplicate(una, echo)
            }
            model::Recovery::Sack | model::Recovery::SackLinux => self.sack_duplicate(una, news),
        };
        let repair = self.repair();
        // No more packets can have left the network than are in it.
        repair.credit = repair.credit.min((nxt - una) as i64);
        if !lost {
            return Step::Go;
        }
        repair.point = nxt;
        repair.partials = 0;
        self.found = self.found.wrapping_add(u32::from(!self.sack()));
        self.phase = Phase::Fast;
        match self.kind {
            model::Recovery::Reno | model::Recovery::RenoNs2 => {
                if self.once {
                    self.guard = nxt;
                }
                self.reno_enter();
            }
            model::Recovery::NewRenoImpatient | model::Recovery::NewRenoSlowButSteady => {
                self.newreno_enter(nxt)
            }
            model::Recovery::Sack | model::Recovery::SackLinux => self.sack_enter(una),
        }
        Step::Enter
    }

    /// SACK says that `from..to`, above `una`, have arrived. Returns how many of them were news.
    pub fn sacked(&mut self, una: u64, from: u64, to: u64) -> u64 {
        self.repair().board.update(una, from, to)
    }

    /// The retransmission timer expired.
    pub fn timed_out(&mut self, una: u64, nxt: u64) {
        self.guard = nxt;
        let repair = self.repair();
        repair.point = nxt;
        repair.duplicates = 0;
        repair.credit = 0;
        repair.again.clear();
        repair.board.all_lost(una, nxt);
        self.phase = Phase::Loss;
    }

    /// Whether the first outstanding segment was sent again in vain and has to be sent once more.
    pub fn first_lost_again(&mut self, una: u64, nxt: u64) -> bool {
        if !self.finds_again || !self.repairing() {
            return false;
        }
        let lost = self
            .repair
            .as_mut()
            .is_some_and(|repair| repair.again.is_lost(una, nxt, repair.board.highest()));
        self.found = self.found.wrapping_add(u32::from(lost && una >= self.guard));
        lost
    }

    /// The first outstanding segment is sent again.
    pub fn first_sent_again(&mut self, una: u64, nxt: u64) {
        if self.finds_again {
            self.repair().again.sent(una, nxt);
        }
        // Without SACK fast recovery keeps its own account of what is in the network, see
        // `Repair::credit`.
        if self.sack() || self.phase == Phase::Loss {
            self.repair().board.sent_again(una, una);
        }
    }

    /// The next segment to send: RFC 6675 §4, NextSeg(); without SACK rules 1 (after a timeout) and
    /// 2 are all there is. `fresh`: whether there is new data to send.
    pub fn next_segment(&mut self, una: u64, nxt: u64, fresh: bool) -> Option<Next> {
        let new = fresh.then_some(Next::New);
        let Some(repair) = &self.repair else { return new };
        let board = &repair.board;
        if !self.repairing() {
            return new;
        }
        if let Some(segment) = board.next_lost(una) {
            return Some(Next::Again(segment));
        }
        if fresh || self.phase != Phase::Fast || !self.sack() {
            return new;
        }
        if let Some(segment) = board.next_hole(una) {
            return Some(Next::Again(segment));
        }
        board.rescue(una, nxt).map(Next::Rescue)
    }

    /// What `next_segment` said is done.
    pub fn sent(&mut self, una: u64, nxt: u64, next: Next) {
        match (&mut self.repair, next) {
            (Some(repair), Next::Again(segment)) => {
                if self.finds_again {
                    repair.again.sent(segment, nxt);
                }
                repair.board.sent_again(una, segment);
            }
            (Some(repair), Next::Rescue(_)) => repair.board.rescued(repair.point),
            _ => {}
        }
    }

    /// Whether duplicate ACKs for `una` prove a loss in spite of an earlier retransmission of
    /// everything up to `guard`. Segments that arrive out of order leave the echoed timestamp as it
    /// was; unneeded retransmissions change it (RFC 6582 §4.2, RFC 7323 §4.3).
    fn past_guard(&self, una: u64, echo: Nanos) -> bool {
        if self.once {
            return una > self.guard || self.guard == 0; // ns-2 has no timestamp heuristic
        }
        una > self.guard || self.guard == 0 || (una == self.guard && echo == self.last_echo)
    }
}
