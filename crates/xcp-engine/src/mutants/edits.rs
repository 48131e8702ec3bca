//! Where the robust law and its sender are edited for [`parts`](super::parts) and
//! [`constants`](super::constants): the files, and the texts that both lists change.

use super::list::{Edit, Mutant};

pub const fn state(right: &'static str, wrong: &'static str) -> Edit {
    Edit { file: "robust_state.h", right, wrong }
}

pub const fn calendar(right: &'static str, wrong: &'static str) -> Edit {
    Edit { file: "robust_calendar.h", right, wrong }
}

pub const fn part(right: &'static str, wrong: &'static str) -> Edit {
    Edit { file: "robust_part.h", right, wrong }
}

pub const fn router(right: &'static str, wrong: &'static str) -> Edit {
    Edit { file: "robust.h", right, wrong }
}

pub const fn opening(right: &'static str, wrong: &'static str) -> Edit {
    Edit { file: "robust_first.h", right, wrong }
}

pub const fn sender(right: &'static str, wrong: &'static str) -> Edit {
    Edit { file: "robust_sender.h", right, wrong }
}

pub const fn bound(right: &'static str, wrong: &'static str) -> Edit {
    Edit { file: "robust_bound.h", right, wrong }
}

pub const fn kept(right: &'static str, wrong: &'static str) -> Edit {
    Edit { file: "robust_sender_state.h", right, wrong }
}

pub const fn jumps(right: &'static str, wrong: &'static str) -> Edit {
    Edit { file: "jumps.h", right, wrong }
}

pub const fn way_back(right: &'static str, wrong: &'static str) -> Edit {
    Edit { file: "way_back.h", right, wrong }
}

pub const fn one(name: &'static str, what: &'static str, edits: &'static [Edit]) -> Mutant {
    Mutant { name, what, edits }
}

pub const STANDS: &str = "!(how & XCP_ROBUST_FALLS) && backlog > carried >> 2";
pub const FIRST: &str = "s->rounds < XCP_ROBUST_FIRST_ROUNDS";
pub const CAP: &str = "((xcp_robust_is_gentle(s) ? 3ULL : 16ULL) * s->acked / 2 + 4) << 32";
pub const VANISHED: &str = "s->vanished = XCP_ROBUST_VANISHED;";
pub const OFTEN: &str = "j->count > XCP_JUMPS_OFTEN";
pub const RIGHT: &str = "right / 4";
pub const AGREEING: &str = "r->agreeing >= XCP_ROBUST_AGREEING";
pub const HEAVY: &str = "s->lost >= 3 && \
    (4ULL * s->lost > sum || (20ULL * s->lost > sum && queued))";
pub const FLIGHT: &str = "xcp_robust_more(2 * s->base_ns, rtt + (rtt >> 1)) + 2 * back";
pub const FILLS: &str = "s->back_last > s->back_then + (s->base_ns >> 22)";
pub const SHOWS: &str = "q->infl > 2 * q->tau && !s->lost";
pub const QUEUED: &str = "q.mean - s->base_ns > q.tau >> 1 || s->last_infl_ns > q.tau >> 1";
pub const OTHERS: &str = "s->stuck > XCP_ROBUST_OTHERS || s->flat > 3";
pub const STANDS_SO_LONG: &str = "s->stuck == XCP_ROBUST_STANDS";
pub const TRIED: &str = "s->stuck > XCP_ROBUST_STANDS";
pub const ANOTHER: &str = "off > r->capacity >> 2";
pub const FLOOR: &str = "xcp_robust_more(s->explicit_window >> 1, XCP_ROBUST_LEAST_WINDOW)";
pub const PATIENCE: &str = "1000000000ULL";
