//! What is drawn beside measured curves for comparison: theory's, another program's, a paper's.
//! Where the numbers come from is for the caller.

use std::collections::BTreeMap;

/// Points in order of x.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// What it shows; in a report's chart of rates the flows it speaks of.
    pub name: String,
    /// (x, y). NaN as y is a gap.
    pub points: Vec<(f64, f64)>,
}

/// What one theory says of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// Name of the theory.
    pub name: String,
    /// Goodput of flows, bit/s, in steps: each y holds from its x (seconds) to the next.
    pub goodputs: Vec<Curve>,
    /// Utilisation of link directions over the measured period.
    pub utilisation: BTreeMap<String, f64>,
}

impl Curve {
    /// The value of a curve in steps over the stretch that ends at `x`.
    pub(crate) fn step_before(&self, x: f64) -> f64 {
        let begun = self.points.partition_point(|(from, _)| *from < x);
        self.points[..begun].last().map_or(f64::NAN, |(_, y)| *y)
    }
}
