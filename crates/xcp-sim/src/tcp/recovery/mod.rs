//! Finding and repairing losses. Each rule has its own file; they share the phase of the connection and the scoreboard.
//!
//! What all of them do:
//! 1. A retransmission timeout takes everything outstanding for lost and repairs it from the front as the window opens (go-back-N); what SACK
//!    has reported is kept and skipped. RFC 2018 §8 would discard it in case the receiver reneged; these receivers do not, Linux keeps it too,
//!    and RFC 6675 §5.1 describes the debate.
//! 2. After a timeout no fast retransmit until everything then outstanding is acknowledged (RFC 6582 §4, RFC 6675 §5.1). Reno has this too,
//!    though RFC 5681 does not ask for it: without it the duplicates of go-back-N start it over and over (ns-2's `bugfix_`).
//! 3. Limited transmit (RFC 3042) always.

mod newreno;
mod reno;
mod sack;
mod scoreboard;

pub(super) use scoreboard::Scoreboard;

use xcp_scenario::model;
use xcp_scenario::units::Nanos;

/// Duplicate ACKs that mean a loss (RFC 5681 §3.2, RFC 6675's DupThresh).
const DUP_THRESH: u32 = 3;

/// What the connection is doing about losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing.
    Open,
    /// Fast recovery, until `Recovery::point` is acknowledged.
    Fast,
    /// After a timeout, until `Recovery::point` is acknowledged.
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
        /// Whether the window must be brought down to what is outstanding, lest all of it leaves at once.
        avoid_burst: bool,
    },
}

/// State of loss recovery.
#[derive(Debug, Clone)]
pub(super) struct Recovery {
    pub kind: model::Recovery,
    pub phase: Phase,
    /// Duplicate ACKs in a row.
    pub duplicates: u32,
    /// Without SACK: packets known or taken to have left the network though not acknowledged. Limited transmit's two in `Open`, Reno's
    /// inflation of the window in `Fast`, negative where NewReno's deflation says so.
    pub credit: i64,
    /// End of what was outstanding when the phase began.
    pub point: u64,
    /// End of what was outstanding at the last timeout (Reno) or the last timeout or recovery (NewReno: `recover`): below it duplicate ACKs
    /// prove nothing.
    pub guard: u64,
    /// Partial ACKs of this recovery.
    pub partials: u32,
    /// Echoed timestamp of the last ACK that advanced.
    pub last_echo: Nanos,
    pub board: Scoreboard,
}

impl Recovery {
    pub fn new(kind: model::Recovery) -> Self {
        let board = Scoreboard::default();
        Recovery { kind, phase: Phase::Open, duplicates: 0, credit: 0, point: 0, guard: 0, partials: 0, last_echo: 0, board }
    }

    pub fn sack(&self) -> bool {
        self.kind == model::Recovery::Sack
    }

    /// Packets taken to be in the network, NewReno's deflation left out.
    pub fn in_network(&self, una: u64, nxt: u64) -> u64 {
        (self.board.pipe(una, nxt) as i64 - self.credit.max(0)).max(0) as u64
    }

    /// What is compared with the window before sending: packets taken to be in the network, and NewReno's deflation of the window.
    #[inline]
    pub fn outstanding(&self, una: u64, nxt: u64) -> u64 {
        let pipe = self.board.pipe(una, nxt);
        if self.credit == 0 { pipe } else { (pipe as i64 - self.credit).max(0) as u64 }
    }

    /// The cumulative acknowledgement moved from `old` to `una`.
    #[inline]
    pub fn advanced(&mut self, old: u64, una: u64, echo: Nanos, cwnd: u32) -> Step {
        self.board.advance(old, una);
        self.last_echo = echo;
        self.duplicates = 0;
        let step = match self.phase {
            Phase::Open => {
                self.credit = 0;
                return Step::Go;
            }
            Phase::Loss => {
                if una >= self.point {
                    self.phase = Phase::Open;
                }
                return Step::Go;
            }
            Phase::Fast => match self.kind {
                model::Recovery::Reno => Step::Leave { avoid_burst: false },
                model::Recovery::NewRenoImpatient | model::Recovery::NewRenoSlowButSteady => self.newreno_advanced(una - old, una, cwnd),
                model::Recovery::Sack => self.sack_advanced(una),
            },
        };
        if let Step::Leave { .. } = step {
            self.phase = Phase::Open;
            self.credit = 0;
            self.partials = 0;
        }
        step
    }

    /// An ACK that does not advance while data is outstanding; `news`: it carries SACK information not seen before.
    pub fn duplicate(&mut self, una: u64, nxt: u64, echo: Nanos, news: bool) -> Step {
        let lost = match self.kind {
            model::Recovery::Reno => self.reno_duplicate(una, echo),
            model::Recovery::NewRenoImpatient | model::Recovery::NewRenoSlowButSteady => self.newreno_duplicate(una, echo),
            model::Recovery::Sack => self.sack_duplicate(una, news),
        };
        // No more packets can have left the network than are in it.
        self.credit = self.credit.min((nxt - una) as i64);
        if !lost {
            return Step::Go;
        }
        self.phase = Phase::Fast;
        self.point = nxt;
        self.partials = 0;
        match self.kind {
            model::Recovery::Reno => self.reno_enter(),
            model::Recovery::NewRenoImpatient | model::Recovery::NewRenoSlowButSteady => self.newreno_enter(),
            model::Recovery::Sack => self.sack_enter(una),
        }
        Step::Enter
    }

    /// The retransmission timer expired.
    pub fn timed_out(&mut self, una: u64, nxt: u64) {
        self.phase = Phase::Loss;
        self.point = nxt;
        self.guard = nxt;
        self.duplicates = 0;
        self.credit = 0;
        self.board.all_lost(una, nxt);
    }

    /// Whether duplicate ACKs for `una` prove a loss in spite of an earlier retransmission of everything up to `guard`. Segments that arrive
    /// out of order leave the echoed timestamp as it was; unneeded retransmissions change it (RFC 6582 §4.2, RFC 7323 §4.3).
    fn past_guard(&self, una: u64, echo: Nanos) -> bool {
        una > self.guard || self.guard == 0 || (una == self.guard && echo == self.last_echo)
    }
}
