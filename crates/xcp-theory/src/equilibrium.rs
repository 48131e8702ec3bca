//! The rates at which XCP's law comes to rest: S. Low, L. Andrew, B. Wydrowski, Understanding XCP:
//! Equilibrium and Fairness (INFOCOM 2005).
//!
//! A flow rests where its tightest router gives it nothing: min over its links of F = (h + φ⁺)/(N
//! x) − (h + φ⁻)/y is 0. With φ ≥ 0 a router's F ≥ 0 is a cap on the rate of every flow,
//!
//! ```text
//! z = (y/N) / (1 − (α/γ)(c/y − 1)),     none where y ≤ αc/(α + γ), that is .8 c
//! ```
//!
//! so that x = min z over the flow's links: constrained max-min, found by water-filling. A link
//! with M free flows, K stopped ones that send u and N = K + M has its z from γ(u + Mz)² = N z [(α
//! + γ)(u + Mz) − αc].
//!
//! Where this differs from the paper:
//! 1. Datagrams are in y and not in N. They can push the balance below φ = 0, where γ (y − Nz) +
//!    φ/d = 0.
//! 2. A link may have less to give than c: c was told wrong, framing was forgotten, or the router
//!    does not see the datagrams. It is full then, at y, and is held only by its queue: βQ = d (α
//!    (c − y) − φ/d), where d includes Q's own delay, and φ is the one that the shares are at rest
//!    with: −γ d (y − Nz) if Nz ≤ y, else γ d y (1 − y/Nz).
//! 3. Links without a router stop flows as in max-min, as if somebody shared them out evenly.
//! 4. A router that takes datagrams off its capacity (XCP-IR) is one without them, on what they
//!    leave.
//! 5. A router that shuffles only among the flows it limits (iXCP) shares as max-min, as its
//!    authors prove. P-XCP is taken for XCP, which it is where a flow is limited downstream;
//!    upstream it comes nearer to max-min.
//! 6. A router with a calendar (the robust law) shares in the same way, sees the queue that its
//!    grants will meet, and holds it at its target whatever the datagrams' rate.
//! 7. Datagrams with a queue of their own (`others`) leave XCP at least its share of the rate; XCP's
//!    queue is emptied at what they leave.
//! 8. γ = 0 or α = 0 leave the law without this equilibrium; those links are shared evenly.

use crate::max_min::{Allocation, Bound, fill};
use crate::network::{Interval, Link, Network, Others, Router, Sharing};

/// Where the law comes to rest.
#[derive(Debug, Clone, PartialEq)]
pub struct Equilibrium {
    /// Bit/s on the wire of one flow of each class.
    pub rates: Vec<f64>,
    /// What stops each class.
    pub bounds: Vec<Bound>,
    /// By link: z, the most any flow gets there, bit/s on the wire; `None` where the link stops
    /// nobody.
    pub caps: Vec<Option<f64>>,
    /// By link: y, bit/s on the wire.
    pub loads: Vec<f64>,
    /// By link: the queue that stands, bytes; `None` without a router, infinite where the router
    /// cannot hold it (its limit does).
    pub queues: Vec<Option<f64>>,
}

/// Shares of a rate below this are the arithmetic's.
const ROUNDING: f64 = 1e-6;

/// Why a network has no such equilibrium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoEquilibrium {
    /// No XCP flow.
    NoXcp,
    /// TCP without routers' feedback beside it; nobody knows what share that takes.
    OtherTcp,
    /// No flow crosses an XCP router.
    NoRouter,
    /// Links share a medium.
    Medium,
}

impl std::fmt::Display for NoEquilibrium {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoXcp => "there is no XCP flow that lasts",
            Self::OtherTcp => {
                "TCP without feedback shares a link with XCP, and the theory does not know its rate"
            }
            Self::NoRouter => "no flow crosses an XCP router",
            Self::Medium => {
                "links share a medium, and no router knows what the others take from \
                it"
            }
        })
    }
}

/// The equilibrium.
///
/// # Errors
/// Where the theory has nothing to say.
pub fn equilibrium(network: &Network) -> Result<Equilibrium, NoEquilibrium> {
    let routed = |l: &&usize| network.links[**l].router.is_some();
    let explicit = || network.classes.iter().filter(|c| c.explicit);
    if network.media {
        return Err(NoEquilibrium::Medium);
    }
    if explicit().count() == 0 {
        return Err(NoEquilibrium::NoXcp);
    }
    if explicit().all(|c| !c.route.iter().any(|l| routed(&l))) {
        return Err(NoEquilibrium::NoRouter);
    }
    if network
        .classes
        .iter()
        .any(|c| !c.explicit && c.route.iter().any(|l| explicit().any(|x| x.route.contains(l))))
    {
        return Err(NoEquilibrium::OtherTcp);
    }
    let flows: Vec<f64> = (0..network.links.len())
        .map(|l| {
            network.classes.iter().filter(|c| c.route.contains(&l)).map(|c| c.count as f64).sum()
        })
        .collect();
    let Allocation { rates, bounds } = fill(network, |l, fixed, free| {
        let link = &network.links[l];
        let even = ((link.left() - fixed) / free).max(0.0);
        match &link.router {
            Some(router)
                if router.alpha > 0.0
                    && router.gamma > 0.0
                    && router.sharing != Sharing::MaxMin =>
            {
                let (capacity, seen) = known(link, router);
                cap(&Router { capacity, ..*router }, fixed + seen, free, flows[l]).min(even)
            }
            Some(router) => {
                let (capacity, seen) = known(link, router);
                even.min(((capacity - seen - fixed) / free).max(0.0))
            }
            None => even,
        }
    });
    let loads = network.loads(&rates);
    let caps: Vec<Option<f64>> = (0..network.links.len())
        .map(|l| {
            rates.iter().zip(&bounds).find(|(_, b)| **b == Bound::Link(l)).map(|(rate, _)| *rate)
        })
        .collect();
    let sent = network.flow_loads(&rates);
    let queues =
        (0..network.links.len()).map(|l| queue(network, l, flows[l], sent[l], caps[l])).collect();
    Ok(Equilibrium { rates, bounds, caps, loads, queues })
}

/// What a router takes for XCP's capacity, and what datagrams it has in y; bit/s.
fn known(link: &Link, router: &Router) -> (f64, f64) {
    match router.others {
        Others::Input => (router.capacity, link.datagrams),
        Others::Subtracted => ((router.capacity - link.datagrams).max(0.0), 0.0),
        Others::Unseen => (router.capacity, 0.0),
    }
}

/// The positive root z of γ(u + Mz)² = N z [(α + γ)(u + Mz) − αc] or, if that is more than c, which
/// only datagrams make it, the root of γ(y − Nz) = α(y − c).
fn cap(router: &Router, u: f64, free: f64, flows: f64) -> f64 {
    let Router { alpha, gamma, capacity, .. } = *router;
    // -a z² + b z + g = 0 with a > 0, g >= 0: one positive root, or none at all where both vanish.
    let a = free * (flows * (alpha + gamma) - gamma * free);
    let b = 2.0 * gamma * u * free - flows * ((alpha + gamma) * u - alpha * capacity);
    let g = gamma * u * u;
    let root = (b * b + 4.0 * a * g).sqrt();
    // Of the two ways to write it the one without cancellation.
    let z = if b >= 0.0 { (b + root) / (2.0 * a) } else { 2.0 * g / (root - b) };
    if u + free * z <= capacity {
        return z;
    }
    let spare = (alpha * capacity - (alpha - gamma) * u).max(0.0);
    spare / (alpha * free + gamma * (flows - free))
}

/// Mean or greatest round trip of the flows at a link that makes them all wait this long, as far as
/// its router believes them.
pub(crate) fn interval(network: &Network, link: usize, wait: f64) -> Option<f64> {
    let crossing = || network.classes.iter().filter(move |c| c.explicit && c.route.contains(&link));
    let flows: f64 = crossing().map(|c| c.count as f64).sum();
    let router = network.links[link].router?;
    let believed = |rtt: f64| rtt.min(router.longest - wait);
    (flows > 0.0).then(|| match router.interval {
        Interval::Mean => {
            crossing().map(|c| c.count as f64 * believed(c.rtt)).sum::<f64>() / flows + wait
        }
        Interval::Max => crossing().map(|c| believed(c.rtt)).fold(0.0, f64::max) + wait,
    })
}

fn queue(network: &Network, l: usize, flows: f64, sent: f64, cap: Option<f64>) -> Option<f64> {
    let link = &network.links[l];
    let router = link.router?;
    let (Some(cap), Some(d)) = (cap, interval(network, l, 0.0)) else { return Some(0.0) };
    // Bytes of queue per second of d that β must hold; the queue lengthens d by its own delay
    // (beyond `longest` too, which is left out: nobody lets a queue stand that long).
    let (capacity, seen) = known(link, &router);
    let (y, most) = (sent + seen, flows * cap);
    let moved = if most <= y {
        y - most
    } else if router.sharing == Sharing::MaxMin {
        0.0
    } else {
        -y * (1.0 - y / most)
    };
    let excess = router.alpha * (capacity - y) + router.gamma * moved;
    // A router with a calendar measures its capacity, and foresees the queue.
    let none = router.calendar || sent < (1.0 - ROUNDING) * link.left();
    let excess = if none || excess < ROUNDING * link.rate { 0.0 } else { excess / 8.0 };
    let stiffness = router.beta - excess * 8.0 / link.drain();
    let extra = if excess <= 0.0 {
        0.0
    } else if stiffness > 0.0 {
        excess * (d + router.target * 8.0 / link.drain()) / stiffness
    } else {
        f64::INFINITY
    };
    Some((router.target + extra).min(link.limit.max(0.0)))
}
