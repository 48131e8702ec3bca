//! Theory's curves for the report of runs: max-min shares and XCP's equilibrium, as they change
//! while flows come and go.

use std::collections::BTreeMap;

use xcp_model::Scenario;
use xcp_theory::network::Network;
use xcp_theory::predict::{Theory, over_time};
use xcp_theory::timeline;

use crate::{Curve, Reference};

/// Two theories that agree this well are one line.
const SAME: f64 = 1e-3;

/// What theory says beside each run.
#[must_use]
pub fn references(scenarios: &[Scenario]) -> Vec<Vec<Reference>> {
    scenarios.iter().map(of).collect()
}

fn of(scenario: &Scenario) -> Vec<Reference> {
    let Some(stretches) = timeline(scenario) else { return Vec::new() };
    let mut all: Vec<Reference> = Theory::ALL
        .iter()
        .map(|&theory| {
            let goodputs = goodputs(
                theory,
                stretches.iter().map(|(period, network)| (period.from as f64 / 1e9, network)),
            );
            Reference {
                name: theory.name().to_owned(),
                utilisation: utilisation(scenario, theory, &stretches),
                goodputs,
            }
        })
        .filter(|r| !r.goodputs.is_empty())
        .collect();
    if let [a, b] = &mut all[..]
        && a.goodputs.iter().zip(&b.goodputs).all(|(x, y)| same(x, y))
    {
        a.name = format!("{} and {}", a.name, b.name);
        all.truncate(1);
    }
    all
}

fn goodputs<'a>(theory: Theory, stretches: impl Iterator<Item = (f64, &'a Network)>) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for (from, network) in stretches {
        // Transfers that end are none of theory's business; beside them nothing can be said.
        let rates = if network.left_out == 0 {
            theory.rates(network).unwrap_or_default()
        } else {
            Vec::new()
        };
        // Who is not there has a gap.
        curves.iter_mut().for_each(|c| c.points.push((from, f64::NAN)));
        for (class, rate) in network.classes.iter().zip(rates) {
            let point = (from, class.goodput(rate));
            match curves.iter_mut().find(|c| c.name == class.name) {
                Some(curve) => *curve.points.last_mut().unwrap_or(&mut (0.0, 0.0)) = point,
                None => curves.push(Curve { name: class.name.clone(), points: vec![point] }),
            }
        }
    }
    curves
}

fn utilisation(
    scenario: &Scenario,
    theory: Theory,
    stretches: &[(xcp_model::units::Period, Network)],
) -> BTreeMap<String, f64> {
    let names: std::collections::BTreeSet<&str> =
        stretches.iter().flat_map(|(_, n)| &n.links).map(|l| l.name.as_str()).collect();
    let of = |name: &&str| {
        over_time(stretches, theory, &format!("links.{name}.utilisation"), scenario.measure)
            .map(|u| ((*name).to_owned(), u))
    };
    names.iter().filter_map(of).collect()
}

fn same(a: &Curve, b: &Curve) -> bool {
    let near = |x: f64, y: f64| (x - y).abs() <= SAME * x.abs() || x.is_nan() && y.is_nan();
    a.points.len() == b.points.len() && a.points.iter().zip(&b.points).all(|(p, q)| near(p.1, q.1))
}
