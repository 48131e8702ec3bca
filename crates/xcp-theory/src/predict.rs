//! What theory puts beside a measured number: the metrics of `[[expect]]` that it knows, which are
//! the utilisation of links and the goodput and fairness of flows. Averages over time follow the
//! [`timeline`](mod@crate::timeline).

use xcp_model::Scenario;
use xcp_model::run::jain;
use xcp_model::units::Period;

use crate::equilibrium::equilibrium;
use crate::max_min::max_min;
use crate::network::Network;
use crate::timeline::timeline;

/// The theories that give rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Theory {
    /// Max-min fair shares.
    MaxMin,
    /// The equilibrium of XCP's law.
    Equilibrium,
}

impl Theory {
    /// Both theories.
    pub const ALL: [Theory; 2] = [Theory::MaxMin, Theory::Equilibrium];

    /// As tables and charts call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MaxMin => "max-min",
            Self::Equilibrium => "equilibrium",
        }
    }

    /// Bit/s on the wire of one flow of each class; `None` where the theory has nothing to say.
    #[must_use]
    pub fn rates(self, network: &Network) -> Option<Vec<f64>> {
        match self {
            Self::MaxMin => Some(max_min(network).rates),
            Self::Equilibrium => equilibrium(network).ok().map(|e| e.rates),
        }
    }
}

/// A metric's value by theory, over a period (the measured one if absent). `None` for metrics no
/// theory here knows, where there are transfers that end, of which theory does not know when they
/// do, and where more changes than the timeline follows.
#[must_use]
pub fn predict(
    scenario: &Scenario,
    theory: Theory,
    metric: &str,
    period: Option<Period>,
) -> Option<f64> {
    over_time(&timeline(scenario)?, theory, metric, period.unwrap_or(scenario.measure))
}

/// [`predict`] for a [`timeline`](mod@crate::timeline) that is at hand.
#[must_use]
pub fn over_time(
    stretches: &[(Period, Network)],
    theory: Theory,
    metric: &str,
    period: Period,
) -> Option<f64> {
    let parts: Vec<&str> = metric.split('.').collect();
    let (mut sum, mut weight) = (0.0, 0.0);
    for (stretch, network) in stretches {
        let (from, to) = (stretch.from.max(period.from), stretch.to.min(period.to));
        if from >= to {
            continue;
        }
        if network.left_out > 0 {
            return None;
        }
        let value = match parts[..] {
            ["links", ..] if !known(stretches, &parts) => None,
            _ => at(network, theory, &parts),
        };
        let Some(value) = value else { continue };
        let length = (to - from) as f64;
        sum += value * length;
        weight += length;
    }
    // A flow is judged over the part of the period in which it is there, a link over all of it.
    (weight > 0.0 && (parts[0] == "flows" || weight >= 0.999 * period.length() as f64))
        .then(|| sum / weight)
}

/// Whether data ever cross a link, so that it is known to be idle when they do not.
fn known(stretches: &[(Period, Network)], parts: &[&str]) -> bool {
    let name = parts[1..parts.len() - 1].join(".");
    stretches.iter().any(|(_, n)| n.links.iter().any(|l| l.name == name))
}

fn at(network: &Network, theory: Theory, parts: &[&str]) -> Option<f64> {
    let rates = if network.classes.is_empty() { Vec::new() } else { theory.rates(network)? };
    let utilisation = |name: &str| match network.links.iter().position(|l| l.name == name) {
        Some(link) => Some((network.loads(&rates)[link] / network.links[link].rate).min(1.0)),
        None => Some(0.0),
    };
    let goodputs = |name: &str| -> Vec<f64> {
        let wanted = network
            .classes
            .iter()
            .zip(&rates)
            .filter(|(c, _)| name == "*" || c.name == name || member(name, &c.name));
        wanted
            .flat_map(|(c, &rate)| {
                std::iter::repeat_n(
                    c.goodput(rate),
                    if member(name, &c.name) { 1 } else { c.count },
                )
            })
            .collect()
    };
    match parts {
        ["jain"] if !rates.is_empty() => jain(&goodputs("*")),
        ["links", name, "utilisation" | "utilisation_mean"] => utilisation(name),
        ["links", name, "reverse", "utilisation" | "utilisation_mean"] => {
            utilisation(&format!("{name}.reverse"))
        }
        ["flows", name, "goodput" | "goodput_mean"] => over(&goodputs(name), "mean"),
        ["flows", name, "goodput" | "goodput_mean", how] => over(&goodputs(name), how),
        _ => None,
    }
}

/// Whether a name is that of a member of a group: `NAME-3`.
fn member(name: &str, group: &str) -> bool {
    name.strip_prefix(group)
        .and_then(|rest| rest.strip_prefix('-'))
        .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

fn over(values: &[f64], how: &str) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let (least, greatest) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &v| (a.min(v), b.max(v)));
    Some(match how {
        "mean" => mean,
        "min" => least,
        "max" => greatest,
        "sum" => mean * values.len() as f64,
        "jain" => jain(values)?,
        "spread" => (greatest - least) / mean,
        _ => return None,
    })
}
