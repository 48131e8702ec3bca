//! Max-min fair shares by water-filling (Bertsekas & Gallager, Data Networks, §6.5.2): all rates
//! rise together; a link that is full, or buffers that allow no more, stop those concerned; the
//! others rise on. Links take datagrams off first, and no law is asked.

use crate::network::{Link, Network};

/// What stops a flow from having more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The link at this place in [`Network::links`].
    Link(usize),
    /// Its buffers.
    Buffer,
}

/// Rates of all classes, and what limits them.
#[derive(Debug, Clone, PartialEq)]
pub struct Allocation {
    /// Bit/s on the wire of one flow of each class.
    pub rates: Vec<f64>,
    /// What stops each class.
    pub bounds: Vec<Bound>,
}

/// The max-min fair shares on a network.
#[must_use]
pub fn max_min(network: &Network) -> Allocation {
    let rest: Vec<f64> = network.links.iter().map(Link::left).collect();
    fill(network, |link, fixed, free| ((rest[link] - fixed) / free).max(0.0))
}

/// Water-filling with any rule for the rate at which a link stops those it limits: `cap(link,
/// fixed, free)` gives it, from what the flows that are stopped already send over the link (bit/s)
/// and how many are not. Infinite where the link stops nobody.
pub(crate) fn fill(network: &Network, mut cap: impl FnMut(usize, f64, f64) -> f64) -> Allocation {
    let classes = &network.classes;
    let mut stopped: Vec<Option<(f64, Bound)>> = vec![None; classes.len()];
    let mut fixed = vec![0.0; network.links.len()];
    let mut free = vec![0.0; network.links.len()];
    for class in classes {
        class.route.iter().for_each(|&l| free[l] += class.count as f64);
    }
    while stopped.iter().any(Option::is_none) {
        let links = (0..network.links.len())
            .filter(|&l| free[l] > 0.5)
            .map(|l| (cap(l, fixed[l], free[l]), Bound::Link(l)));
        let buffers = classes
            .iter()
            .zip(&stopped)
            .filter(|(_, s)| s.is_none())
            .filter_map(|(c, _)| c.limit)
            .map(|r| (r, Bound::Buffer));
        // Of equals the first: buffers last, so that a link that is just full is named.
        let Some((rate, bound)) = links.chain(buffers).min_by(|a, b| a.0.total_cmp(&b.0)) else {
            break;
        };
        for (class, stop) in classes.iter().zip(&mut stopped).filter(|(_, s)| s.is_none()) {
            let concerned = match bound {
                Bound::Link(l) => class.route.contains(&l),
                Bound::Buffer => class.limit.is_some_and(|limit| limit <= rate),
            };
            if concerned {
                *stop = Some((rate, bound));
                for &l in &class.route {
                    fixed[l] += rate * class.count as f64;
                    free[l] -= class.count as f64;
                }
            }
        }
    }
    let (rates, bounds) =
        stopped.into_iter().map(|s| s.unwrap_or((f64::INFINITY, Bound::Buffer))).unzip();
    Allocation { rates, bounds }
}
