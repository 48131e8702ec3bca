//! Max-min shares and XCP's equilibrium against what defines them, and against closed forms.

mod common;

use common::{class, link, scenario, two_links};
use proptest::prelude::*;
use xcp_theory::equilibrium::NoEquilibrium;
use xcp_theory::margins::margins;
use xcp_theory::max_min::Bound;
use xcp_theory::network::{Interval, Network, Others, Sharing};
use xcp_theory::predict::Theory;
use xcp_theory::{equilibrium, max_min, predict};

/// Networks of up to five links and six classes, each over a stretch of links, some limited by
/// buffers; datagrams on some links.
fn networks(datagrams: bool) -> impl Strategy<Value = Network> {
    let links =
        prop::collection::vec((1e6..1e9f64, if datagrams { 0.0..0.9 } else { 0.0..1e-300 }), 1..5);
    links
        .prop_flat_map(|links| {
            let n = links.len();
            let classes = prop::collection::vec(
                (1..60usize, 0..n, 0..n, 0.002..0.6f64, prop::option::of(1e4..1e9f64)),
                1..7,
            );
            (Just(links), classes)
        })
        .prop_map(|(links, classes)| Network {
            links: links
                .iter()
                .enumerate()
                .map(|(i, &(rate, share))| link(&format!("l{i}"), rate, rate * share))
                .collect(),
            classes: classes
                .iter()
                .enumerate()
                .map(|(i, &(count, a, b, rtt, limit))| {
                    let route: Vec<usize> = (a.min(b)..=a.max(b)).collect();
                    let mut c = class(&format!("c{i}"), count, &route, rtt);
                    c.limit = limit;
                    c
                })
                .collect(),
            left_out: 0,
            media: false,
        })
}

proptest! {
    /// What defines max-min: nothing is overfull, and every flow has its buffers' rate or a full
    /// link where nobody has more.
    #[test]
    fn max_min_is_max_min(network in networks(true)) {
        let shares = max_min(&network);
        let loads = network.loads(&shares.rates);
        for (link, load) in network.links.iter().zip(&loads) {
            prop_assert!(*load <= link.rate * (1.0 + 1e-9), "{} carries {load} of {}", link.name, link.rate);
        }
        for (class, rate) in network.classes.iter().zip(&shares.rates) {
            let held = class.limit.is_some_and(|limit| *rate >= limit * (1.0 - 1e-9));
            let bottleneck = class.route.iter().any(|&l| {
                let most = network.classes.iter().zip(&shares.rates).filter(|(c, _)| c.route.contains(&l)).map(|(_, r)| *r).fold(0.0, f64::max);
                loads[l] >= network.links[l].rate * (1.0 - 1e-9) && *rate >= most * (1.0 - 1e-9)
            });
            prop_assert!(held || bottleneck, "{} could have more than {rate}", class.name);
        }
    }

    /// What defines the equilibrium: the law gives every flow that buffers do not hold exactly
    /// nothing, min over its links of F = 0; links that stop somebody are used to at least α/(α+γ);
    /// a single link is shared as in max-min.
    #[test]
    fn the_law_is_at_rest_in_its_equilibrium(network in networks(false)) {
        let rest = equilibrium(&network).unwrap();
        let n = |l: usize| -> f64 { network.classes.iter().filter(|c| c.route.contains(&l)).map(|c| c.count as f64).sum() };
        // F/d of a link for a rate, with φ of this load and, where the link is full, no queue.
        let feedback = |l: usize, x: f64| {
            let (c, y) = (network.links[l].rate, rest.loads[l]);
            let phi = 0.4 * (c - y);
            let shuffled = (0.1 * y - phi.abs()).max(0.0);
            (shuffled + phi.max(0.0)) / (n(l) * x) - (shuffled + (-phi).max(0.0)) / y
        };
        for ((class, &x), bound) in network.classes.iter().zip(&rest.rates).zip(&rest.bounds) {
            let least = class.route.iter().map(|&l| feedback(l, x)).fold(f64::INFINITY, f64::min);
            match bound {
                Bound::Link(_) => prop_assert!(least.abs() < 1e-6, "{} at {x}: the law still \
                    gives {least}", class.name),
                Bound::Buffer => prop_assert!(least > -1e-6, "{} at {x}: the law takes {least}", class.name),
            }
        }
        for (l, cap) in rest.caps.iter().enumerate() {
            prop_assert!(rest.loads[l] <= network.links[l].rate * (1.0 + 1e-9));
            if cap.is_some() {
                prop_assert!(rest.loads[l] >= 0.8 * network.links[l].rate * (1.0 - 1e-9), "{} of {}", rest.loads[l], network.links[l].rate);
            }
        }
        if network.links.len() == 1 && network.classes.iter().all(|c| c.limit.is_none()) {
            for (a, b) in rest.rates.iter().zip(&max_min(&network).rates) {
                prop_assert!((a / b - 1.0).abs() < 1e-9);
            }
        }
    }

    /// So it is whatever the routers are told, with the queue that then stands, and d as long as
    /// that makes it.
    #[test]
    fn the_law_is_at_rest_with_its_queue(
        network in networks(true),
        told in prop::collection::vec(0.7..1.4f64, 5),
    ) {
        let mut network = network;
        for (link, told) in network.links.iter_mut().zip(told) {
            link.limit = f64::INFINITY;
            link.router.as_mut().unwrap().capacity = told * link.rate;
        }
        let rest = equilibrium(&network).unwrap();
        let feedback = |l: usize, x: f64| {
            let crossing = || network.classes.iter().filter(|c| c.route.contains(&l));
            let n: f64 = crossing().map(|c| c.count as f64).sum();
            let (link, y, queue) = (&network.links[l], rest.loads[l], rest.queues[l].unwrap());
            let d = crossing().map(|c| c.count as f64 * c.rtt).sum::<f64>() / n
                + queue * 8.0 / link.rate;
            let spare = 0.4 * (link.router.unwrap().capacity - y) - 0.226 * queue * 8.0 / d;
            let shuffled = (0.1 * y - spare.abs()).max(0.0);
            (shuffled + spare.max(0.0)) / (n * x) - (shuffled + (-spare).max(0.0)) / y
        };
        for ((class, &x), bound) in network.classes.iter().zip(&rest.rates).zip(&rest.bounds) {
            if x < 1.0 || class.route.iter().any(|&l| rest.queues[l].unwrap().is_infinite()) {
                continue;
            }
            let least = class.route.iter().map(|&l| feedback(l, x)).fold(f64::INFINITY, f64::min);
            match bound {
                Bound::Link(_) => prop_assert!(least.abs() < 1e-4, "{} at {x}: the law still \
                    gives {least}", class.name),
                Bound::Buffer => prop_assert!(least > -1e-4, "{} at {x}: the law takes {least}",
                    class.name),
            }
        }
    }

    /// Datagrams do not upset that: links are not overfull, and what the caps say is nonnegative.
    #[test]
    fn datagrams_are_served_first(network in networks(true)) {
        let rest = equilibrium(&network).unwrap();
        for (l, link) in network.links.iter().enumerate() {
            prop_assert!(rest.loads[l] <= link.rate * (1.0 + 1e-9));
            prop_assert!(rest.queues[l].unwrap() >= 0.0);
        }
        prop_assert!(rest.rates.iter().all(|r| *r >= 0.0 && r.is_finite()));
    }
}

/// The short flow of iXCP's first figure: r = (−B + √(B² + 4Aγc₂²))/(2A), A = .5n + .4, B = −12n −
/// 32, γc₂² = 1000 (Mbit/s).
#[test]
fn two_links_as_the_closed_form_has_them() {
    let mut table = String::from("   n  short flow  of 55 Mbit/s  utilisation of the first link\n");
    for n in [2, 4, 8, 16, 64, 256, 1024, 4096] {
        let rest = equilibrium(&two_links(n)).unwrap();
        let (a, b) = (0.5 * n as f64 + 0.4, -12.0 * n as f64 - 32.0);
        let closed = (-b + f64::sqrt(b * b + 4.0 * a * 1000.0)) / (2.0 * a) * 1e6;
        assert!(
            (rest.rates[1] / closed - 1.0).abs() < 1e-9,
            "n = {n}: {} for {closed}",
            rest.rates[1]
        );
        assert!((rest.rates[0] * n as f64 / 100e6 - 1.0).abs() < 1e-9);
        table += &format!(
            "{n:4}  {:10.3}  {:12.3}  {:.4}\n",
            rest.rates[1] / 1e6,
            rest.rates[1] / 55e6,
            rest.loads[0] / 155e6
        );
    }
    insta::assert_snapshot!(table);
}

/// Where c₂ ≥ .8 c₁ the short flow's share vanishes as n grows: Low, Andrew and Wydrowski's
/// arbitrarily small part of the max-min share.
#[test]
fn a_share_may_be_arbitrarily_small() {
    for (second, at_4096) in [(124e6, 0.87e6), (140e6, 0.06e6)] {
        let mut network = two_links(4096);
        network.links[1] = link("second", second, 0.0);
        let r = equilibrium(&network).unwrap().rates[1];
        assert!((r - at_4096).abs() < 0.01e6, "{second}: {r}");
        assert!(max_min(&network).rates[1] > 10.0 * r);
    }
}

/// XCP beside datagrams of rate U: counted in the input, the queue is γ U d/(β − γU/C), of which
/// 74.1 packets were measured in ns-2 where this gives 72.6; not counted, α U d/(β − αU/C), without
/// bound from U = βC/α on.
#[test]
fn the_queue_beside_datagrams() {
    let standing = |share: f64, others| {
        let mut network = Network {
            links: vec![link("l", 80e6, share * 80e6)],
            classes: vec![class("c", 1, &[0], 0.1)],
            left_out: 0,
            media: false,
        };
        network.links[0].limit = f64::INFINITY;
        network.links[0].router.as_mut().unwrap().others = others;
        let rest = equilibrium(&network).unwrap();
        assert!((rest.rates[0] - (1.0 - share) * 80e6).abs() < 1.0);
        rest.queues[0].unwrap()
    };
    let bdp = 80e6 * 0.1 / 8.0;
    assert!((standing(0.4, Others::Input) - 0.1 * 0.4 * bdp / (0.226 - 0.1 * 0.4)).abs() < 1.0);
    assert!((standing(0.4, Others::Unseen) - 0.4 * 0.4 * bdp / (0.226 - 0.4 * 0.4)).abs() < 1.0);
    assert!(standing(0.6, Others::Unseen).is_infinite());
}

/// A router that is told more than the link has: the queue that β must hold against α, α (C − R)
/// d/(β − α (C − R)/R), without bound from C = (1 + β/α) R on; told less, there is none. Beside
/// datagrams that it counts, one that is told less fills C + U γ/α.
#[test]
fn the_queue_of_a_wrong_capacity() {
    let at = |told: f64, datagrams: f64| {
        let mut network = Network {
            links: vec![link("l", 80e6, datagrams)],
            classes: vec![class("c", 2, &[0], 0.1)],
            left_out: 0,
            media: false,
        };
        network.links[0].limit = f64::INFINITY;
        network.links[0].router.as_mut().unwrap().capacity = told;
        let rest = equilibrium(&network).unwrap();
        (rest.loads[0], rest.queues[0].unwrap())
    };
    let queue = |excess: f64| excess / 8.0 * 0.1 / (0.226 - excess / 80e6);
    for (told, datagrams, load, want) in [
        (80e6, 0.0, 80e6, 0.0),
        (72e6, 0.0, 72e6, 0.0),
        (88e6, 0.0, 80e6, queue(0.4 * 8e6)),
        (88e6, 16e6, 80e6, queue(0.4 * 8e6 + 0.1 * 16e6)),
        (72e6, 16e6, 76e6, 0.0),
        (78e6, 16e6, 80e6, queue(0.1 * 16e6 - 0.4 * 2e6)),
    ] {
        let (got_load, got) = at(told, datagrams);
        let close = (got_load / load - 1.0).abs() < 1e-9 && (got - want).abs() < 1.0;
        assert!(close, "{told}, {datagrams}: {got_load}, {got} for {load}, {want}");
    }
    assert!(at(1.57 * 80e6, 0.0).1.is_infinite());
}

/// An RTT counts as no more than the longest that the router believes, in the mean and as the
/// greatest.
#[test]
fn no_round_trip_beyond_the_longest() {
    let d = |interval, longest| {
        let classes = vec![class("far", 1, &[0], 3.0), class("near", 1, &[0], 0.1)];
        let mut network =
            Network { links: vec![link("l", 80e6, 0.0)], classes, left_out: 0, media: false };
        let router = network.links[0].router.as_mut().unwrap();
        (router.interval, router.longest) = (interval, longest);
        margins(&network, &equilibrium(&network).unwrap(), 0).unwrap().interval
    };
    for (interval, longest, want) in [
        (Interval::Mean, 65.536, 1.55),
        (Interval::Mean, 1.0, 0.55),
        (Interval::Max, 65.536, 3.0),
        (Interval::Max, 1.0, 1.0),
    ] {
        let got = d(interval, longest);
        assert!((got - want).abs() < 1e-9, "{interval:?} {longest}: {got}");
    }
}

/// What the family's other laws come to: iXCP's shuffle to max-min, XCP-IR beside datagrams to XCP
/// on a smaller link, without a queue.
#[test]
fn the_family() {
    let mut network = two_links(16);
    network.links[0].router.as_mut().unwrap().sharing = Sharing::MaxMin;
    let rest = equilibrium(&network).unwrap();
    assert!(
        rest.rates.iter().zip(&max_min(&network).rates).all(|(a, b)| (a / b - 1.0).abs() < 1e-9)
    );
    let mut beside = two_links(16);
    beside.links[0] = link("first", 175e6, 20e6);
    beside.links[0].router.as_mut().unwrap().others = Others::Subtracted;
    let (with, without) = (equilibrium(&beside).unwrap(), equilibrium(&two_links(16)).unwrap());
    assert!(
        with.rates.iter().zip(&without.rates).all(|(a, b)| (a / b - 1.0).abs() < 1e-9),
        "{with:?}"
    );
    assert_eq!(with.queues[0], Some(0.0));
}

const BUFFERS: &str = r#"
duration = "20s"
[[link]]
name    = "bottleneck"
between = ["S", "D"]
rate    = "10mbit"
delay   = "50ms"
queue   = { kind = "xcp", law = { overhead = 100 } }
[[flow]]
name           = "held"
from           = "S"
to             = "D"
congestion     = "xcp"
receive-buffer = 15200
[[flow]]
name       = "free"
count      = 2
from       = "S"
to         = "D"
congestion = "xcp"
stop       = "10s"
[[flow]]
name       = "short"
from       = "S"
to         = "D"
congestion = "xcp"
bytes      = "10mb"
[[flow]]
name = "cbr"
from = "S"
to   = "D"
udp  = { pattern = "schedule", steps = [["0s", "2mbit"], ["10s", "0bit"]] }
"#;

fn scenario_without_held(scenario: &xcp_model::Scenario) -> xcp_model::Scenario {
    let mut alone = scenario.clone();
    alone.flows.retain(|f| &*f.group.name != "held");
    alone
}

/// On a shared medium who crosses it twice takes twice of it; of the law's rest there nothing is
/// said.
#[test]
fn a_medium_is_shared() {
    let text = r#"
        duration = "10s"
        [[link]]
        name = "first"
        between = ["A", "M"]
        rate = "54mbit"
        delay = "1ms"
        medium = "air"
        queue = { kind = "xcp", limit = 100 }
        [[link]]
        name = "second"
        between = ["M", "B"]
        rate = "54mbit"
        delay = "1ms"
        medium = "air"
        queue = { kind = "xcp", limit = 100 }
        [[flow]]
        name = "both"
        from = "A"
        to = "B"
        congestion = "xcp"
        [[flow]]
        name = "one"
        from = "B"
        to = "M"
        congestion = "xcp"
        "#;
    let scenario = scenario(text);
    let network = Network::before(&scenario, 5_000_000_000);
    let shares = max_min(&network);
    assert!(shares.rates.iter().all(|rate| (rate - 18e6).abs() < 1.0), "{shares:?}");
    let air = network.links.len() - 1;
    assert_eq!((network.links[air].name.as_str(), shares.bounds[0]), ("air", Bound::Link(air)));
    assert_eq!(equilibrium(&network), Err(NoEquilibrium::Medium));
    let utilisation =
        |name: &str| predict(&scenario, Theory::MaxMin, &format!("links.{name}.utilisation"), None);
    assert_eq!(utilisation("first").map(|u| (u * 3.0).round()), Some(1.0));
    assert_eq!(predict(&scenario, Theory::Equilibrium, "links.first.utilisation", None), None);
}

/// A rate that changes hundreds of times is followed; of one that changes more often than can be
/// followed nothing is said.
#[test]
fn many_changes() {
    let changing = |steps: u64, every_ms: u64| {
        let step = |i| format!("[\"{}ms\", \"{}mbit\"]", i * every_ms, 10 + 10 * (i % 2));
        let steps = (1..steps).map(step).collect::<Vec<_>>().join(", ");
        scenario(&format!(
            "duration = \"60s\"\n[[link]]\nname = \"l\"\nbetween = [\"S\", \"D\"]\nrate = \
             \"10mbit\"\ndelay = \"10ms\"\nrate-changes = [{steps}]\nqueue = {{ kind = \"xcp\", \
             limit = 100 }}\n[[flow]]\nname = \"f\"\nfrom = \"S\"\nto = \"D\"\ncongestion = \
             \"xcp\"\n"
        ))
    };
    for theory in Theory::ALL {
        let goodput =
            |scenario| predict(&scenario, theory, "flows.f.goodput", None).map(|rate| rate / 1e6);
        let mean = goodput(changing(600, 100)).unwrap();
        assert!((mean - 15.0 * 1436.0 / 1500.0).abs() < 0.01, "{theory:?}: {mean}");
        assert_eq!(goodput(changing(12_000, 5)), None);
    }
}

/// A scenario's buffers, framing, comings and goings.
#[test]
fn a_scenario_as_theory_sees_it() {
    let scenario = scenario(BUFFERS);
    let network = Network::before(&scenario, 5_000_000_000);
    assert_eq!(network.left_out, 1);
    assert_eq!(
        network.classes.iter().map(|c| (c.name.as_str(), c.count)).collect::<Vec<_>>(),
        [("held", 1), ("free", 2)]
    );
    // Ten whole packets of 1500 bytes a round trip of 100 ms and one packet's time on the link.
    let held = 10.0 * 1500.0 * 8.0 / (0.1 + 1500.0 * 8.0 / 10e6);
    let shares = max_min(&network);
    assert!((shares.rates[0] - held).abs() < 1.0);
    assert!((shares.rates[1] - (8e6 - held) / 2.0).abs() < 1.0);
    assert_eq!(shares.bounds, [Bound::Buffer, Bound::Link(0)]);
    // The router leaves room for 100 bytes of framing with each 1500.
    let rest = equilibrium(&network).unwrap();
    assert!((rest.loads[0] - 10e6 * 15.0 / 16.0).abs() < 10e6 * 0.02, "{}", rest.loads[0]);
    // Of transfers that end theory does not know when they do.
    assert_eq!(predict(&scenario, Theory::MaxMin, "links.bottleneck.utilisation", None), None);
    let scenario = self::scenario(&BUFFERS.replace("bytes      = \"10mb\"", "start = \"19999ms\""));
    // From 10 s on the held flow is alone.
    let utilisation =
        |theory| predict(&scenario, theory, "links.bottleneck.utilisation", None).unwrap();
    assert!((utilisation(Theory::MaxMin) - (1.0 + held / 10e6) / 2.0).abs() < 1e-3);
    // 12 bytes of option, 52 of headers and timestamps.
    let goodput = predict(&scenario, Theory::MaxMin, "flows.held.goodput", None).unwrap();
    assert!((goodput - held * 1436.0 / 1500.0).abs() < 1.0);
    let free = predict(&scenario, Theory::MaxMin, "flows.free-2.goodput", None).unwrap();
    assert!(
        (free - (8e6 - held) / 2.0 * 1436.0 / 1500.0).abs() < 1.0,
        "a flow is judged over the time in which it is there"
    );
    assert_eq!(predict(&scenario, Theory::MaxMin, "links.bottleneck.queue_mean", None), None);
    assert_eq!(predict(&scenario, Theory::MaxMin, "links.nowhere.utilisation", None), None);
    // Nobody is there: data that crossed before, and none now.
    let alone = scenario_without_held(&scenario);
    assert_eq!(
        predict(&alone, Theory::MaxMin, "links.bottleneck.utilisation", None)
            .map(|u| (u * 100.0).round()),
        Some(50.0)
    );
}
