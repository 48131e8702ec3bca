//! Units shared by the scenario, the simulator and the results. Integer, so that the same input
//! gives the same bytes.

/// Nanoseconds, since the start of the run where it is a point in time. 2^64 ns are 584 years.
pub type Nanos = u64;

/// Nanoseconds in a second.
pub const NANOS_PER_SEC: Nanos = 1_000_000_000;

/// A half-open stretch of time, `from <= t < to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// First instant that belongs to it.
    pub from: Nanos,
    /// First instant after it.
    pub to: Nanos,
}

impl Period {
    /// Whether `t` lies within.
    #[must_use]
    pub fn contains(&self, t: Nanos) -> bool {
        self.from <= t && t < self.to
    }

    /// How long it lasts, nanoseconds.
    #[must_use]
    pub fn length(&self) -> Nanos {
        self.to - self.from
    }
}
