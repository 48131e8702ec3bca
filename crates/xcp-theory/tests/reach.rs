//! What could be reached, against closed forms, against itself, and the medium against the
//! simulator.

mod common;

use common::scenario;
use proptest::prelude::*;
use xcp_theory::bound::forced::Forced;
use xcp_theory::bound::least::{Jumps, Least, Level};
use xcp_theory::bound::medium::{Saturated, saturated, without_collisions};
use xcp_theory::bound::predictor::{Aim, follow};
use xcp_theory::bound::{Reach, media, reaches};

/// A link with a round trip of 80 ms, and what else the lines say.
fn one_link(rate: &str, more: &str) -> String {
    format!(
        r#"
        duration = "20s"
        measure = {{ from = "2s", to = "20s" }}
        [[link]]
        name = "bottleneck"
        between = ["S", "D"]
        delay = "40ms"
        queue = {{ kind = "xcp", limit = "2bdp" }}
        {rate}
        [[flow]]
        name = "flow"
        count = 4
        from = "S"
        to = "D"
        congestion = "xcp"
        {more}
        "#
    )
}

fn reach(rate: &str, more: &str) -> Reach {
    reaches(&scenario(&one_link(rate, more))).remove(0)
}

fn near(found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() <= within * expected.abs(), "{found}, not {expected}");
}

/// Bytes that are lost and byte seconds of queue over 18 s at a mean rate (bit/s).
fn totals(reach: &Reach) -> (f64, f64) {
    (
        (1.0 - reach.exact.utilisation) * reach.capacity / 8.0 * 18.0,
        reach.exact.queue * 1500.0 * 18.0,
    )
}

#[test]
fn a_rise_loses_what_was_not_sent_a_dead_time_before() {
    let told = reach(
        r#"rate = "10mbit"
        rate-changes = [["10s", "20mbit"]]"#,
        "",
    );
    near(told.dead_time, 0.0812, 1e-9);
    let (lost, queue) = totals(&told);
    near(lost, 10e6 / 8.0 * 0.0812, 0.01);
    assert!(told.bound.is_none(), "one step is no process");
    assert!(queue < 100.0, "{queue}");
}

/// Two packets that stand show the rise when it comes, and while they last.
#[test]
fn what_waits_shows_the_rate() {
    let told = reach(
        r#"rate = "10mbit"
        rate-changes = [["10s", "20mbit"]]"#,
        "",
    );
    let lost = |utilisation: f64| (1.0 - utilisation) * told.capacity / 8.0 * 18.0;
    near(lost(told.untold.utilisation), 10e6 / 8.0 * told.dead_time - 3000.0, 0.02);
    near(told.untold.queue, 2.0, 0.03);
}

#[test]
fn a_fall_queues_what_was_on_the_way_and_drains_it() {
    let told = reach(
        r#"rate = "20mbit"
        rate-changes = [["10s", "5mbit"]]"#,
        "",
    );
    let (lost, queue) = totals(&told);
    // Up to (20 − 5) d, and down again at 5 Mbit/s.
    let d = told.dead_time;
    near(queue, 15e6 / 8.0 * d * d / 2.0 * (1.0 + 15.0 / 5.0), 0.02);
    assert!(lost < 100.0, "{lost}");
    assert!(told.exact.utilisation > 0.9999);
}

#[test]
fn what_is_constant_is_known() {
    let beside = reach(
        r#"rate = "10mbit""#,
        r#"
        [[flow]]
        name = "datagrams"
        from = "S"
        to = "D"
        udp = { pattern = "constant", rate = "4mbit" }
        "#,
    );
    assert!(beside.exact.utilisation > 0.999 && beside.exact.queue < 0.1, "{beside:?}");
    assert!(beside.bound.is_none() && beside.no_bound.is_some());
    // A link where nothing changes is not spoken of.
    assert!(reaches(&scenario(&one_link(r#"rate = "10mbit""#, ""))).is_empty());
}

/// Two bursts a second of 6 Mbit/s, 250 ms long: each loses at its end and queues at its beginning.
#[test]
fn a_burst_costs_at_both_ends() {
    let burst = reach(
        r#"rate = "10mbit""#,
        r#"
        [[flow]]
        name = "datagrams"
        from = "S"
        to = "D"
        udp = { pattern = "on-off", rate = "6mbit", on = "250ms", off = "250ms" }
        "#,
    );
    let d = burst.dead_time;
    near(1.0 - burst.exact.utilisation, 0.6 * d * 2.0, 0.05);
    near(burst.exact.queue * 1500.0 * 8.0, 2.0 * 6e6 * d * d / 2.0 * 10.0 / 4.0, 0.07);
}

/// Levels that are drawn anew after two dead times and an exponentially distributed time.
fn redrawn(levels: &[(f64, f64)], dead: f64, gap: f64) -> Jumps {
    let armed = gap - 2.0 * dead;
    let row: Vec<f64> = levels.iter().map(|(_, share)| *share).collect();
    let level = |&(left, share): &(f64, f64)| Level {
        left,
        carried: left,
        fresh: share * armed / gap,
        hazard: 1.0 / armed,
        again: 0.0,
    };
    Jumps {
        levels: levels.iter().map(level).collect(),
        to: vec![row; levels.len()],
        capacity: levels.iter().map(|(left, share)| left * share).sum(),
        dead,
    }
}

/// Beside one burst of this share of the link, on and off for such times.
fn bursts(capacity: f64, share: f64, on: f64, off: f64, dead: f64) -> Jumps {
    let level = |left: f64, stays: f64| Level {
        left,
        carried: capacity,
        fresh: stays / (on + off) * (-dead / stays).exp(),
        hazard: 1.0 / stays,
        again: 1.0 / stays,
    };
    Jumps {
        levels: vec![level(capacity, off), level((1.0 - share) * capacity, on)],
        to: vec![vec![0.0, 1.0], vec![1.0, 0.0]],
        capacity,
        dead,
    }
}

/// Where jumps are rare, the bound has a closed form. What a controller commits at the upper of two
/// levels is worth keeping if λ is large enough, and then it queues (c1 − c2) d² / 2 · c1 / c2 in
/// each fall; and at the lower one it loses (c1 − c2) d in each rise, or λ times less if it is
/// cheaper to have a queue stand.
#[test]
fn rare_jumps_have_a_closed_form() {
    let (c1, c2, d, gap) = (2e6, 1.5e6, 0.1, 10.0);
    let jumps = redrawn(&[(c1, 0.5), (c2, 0.5)], d, gap);
    let least = Least::new(&jumps);
    let step = c1 - c2;
    // Half of all jumps lead to the other level.
    let loss = 0.25 * step * d / gap;
    let queue = 0.25 * step * d * d / 2.0 * c1 / c2 / gap;
    let found = least.queue_at(1.0 - loss / jumps.capacity);
    near(found, queue, 0.02);
    let exact = follow(&jumps.path(), Aim::EXACT);
    near((1.0 - exact.utilisation) * jumps.capacity, loss, 0.1);
    near(exact.queue, queue, 0.1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// No predictor gets below the bound, whatever it commits and leaves standing. A path of some
    /// thousand jumps is drawn, so there is a margin for chance.
    #[test]
    fn no_predictor_beats_the_bound(
        levels in prop::collection::vec(5e5f64..3e6, 2..6),
        dead in 0.02f64..0.3,
        gap in 3.0f64..15.0,
        on in 2.0f64..20.0,
        off in 2.0f64..20.0,
        burst in 0.1f64..0.8,
        theta in 0.7f64..1.0,
        standing in 0.0f64..0.5,
        mean in any::<bool>(),
    ) {
        let share = 1.0 / levels.len() as f64;
        let levels: Vec<(f64, f64)> = levels.into_iter().map(|left| (left, share)).collect();
        for jumps in [
            redrawn(&levels, dead, gap * dead),
            bursts(2e6, burst, on * dead, off * dead, dead),
        ] {
            let path = jumps.path();
            let least = Least::new(&jumps);
            for aim in [Aim::EXACT, Aim { theta, standing: standing * jumps.capacity * dead, mean, untold: mean }] {
                let found = follow(&path, aim);
                let lost = 1.1 * (1.0 - found.utilisation);
                let queue = least.queue_at(1.0 - lost);
                let most = least.utilisation_at(1.1 * found.queue);
                prop_assert!(queue <= 1.1 * found.queue, "{queue} {found:?}");
                prop_assert!(1.0 - most <= lost + 1e-9, "{most} {found:?}");
            }
        }
    }

    /// A longer dead time is no easier.
    #[test]
    fn longer_is_harder(
        burst in 0.1f64..0.8,
        dead in 0.02f64..0.2,
        longer in 1.1f64..1.5,
        utilisation in 0.9f64..0.999,
    ) {
        // Times between jumps stay. They are long, as the bound is slack where a second jump comes
        // soon.
        let levels = [(2e6, 0.5), ((1.0 - burst) * 2e6, 0.5)];
        let (near, far) = (redrawn(&levels, dead, 12.0), redrawn(&levels, longer * dead, 12.0));
        let of = |jumps: &Jumps| {
            let least = Least::new(jumps);
            (least.queue_at(utilisation), 1.0 - least.utilisation_at(1e4))
        };
        let (near_queue, near_loss) = of(&near);
        let (far_queue, far_loss) = of(&far);
        prop_assert!(far_queue >= 0.99 * near_queue && far_loss >= 0.99 * near_loss);
        let (near, far) = (follow(&near.path(), Aim::EXACT), follow(&far.path(), Aim::EXACT));
        prop_assert!(far.queue > near.queue && far.utilisation < near.utilisation);
    }
}

/// What it takes for its datagrams are the run's own: as many as the simulator sends.
#[test]
fn datagrams_are_those_of_the_run() {
    let mut scenario = scenario(&one_link(
        r#"rate = "10mbit""#,
        r#"
        [[flow]]
        name = "datagrams"
        from = "S"
        to = "D"
        start-jitter = "1s"
        udp = { pattern = "on-off", rate = "6mbit", on = "250ms", off = "250ms", random = true }
        "#,
    ));
    scenario.flows.retain(|flow| !flow.is_tcp());
    scenario.measure.from = 0;
    let forced = Forced::new(&scenario, 0, 80_000_000, 1500.0).unwrap();
    let run = xcp_sim::simulate(&scenario, &mut ()).unwrap();
    let sent = forced.datagrams.iter().sum::<f64>();
    near(sent, run.summary.links["bottleneck"].packets as f64 * 1500.0, 1e-3);
    // What is known of them adds up to what comes.
    near(forced.intensity.iter().sum(), sent, 0.01);
}

const HUB: &str = r#"
    duration = "300s"
    measure = { from = "20s" }
    sample = "off"
    [[link]]
    name = "hub"
    between = ["S", "D"]
    rate = "10mbit"
    delay = "0s"
    medium = "hub"
    framing = 38
    queue = { limit = "5000p" }
    [[link]]
    name = "far"
    between = ["D", "E"]
    rate = "100mbit"
    delay = "50ms"
"#;

#[test]
fn a_medium_carries_as_much_as_in_the_simulator() {
    near(without_collisions(1500.0, 38.0), 1500.0 / 1589.0, 1e-12);
    carries(HUB, [false; 2]);
}

/// A slot that nobody needs after one packet of two, and an acknowledgement after the other.
#[test]
fn where_stations_yield_hardly_anything_collides() {
    let hub = HUB.replace("limit = \"5000p\"", "limit = \"5000p\", yields = true");
    let full = carries(&hub, [true; 2]);
    near(full.utilisation, 3000.0 / (2.0 * 1538.0 + 64.0 + 102.0), 0.003);
    assert!(full.collisions < 0.001 && full.lost == 0.0, "{full:?}");
}

/// Where only acknowledgements are polite, they starve.
#[test]
fn who_yields_to_who_does_not_starves() {
    assert_eq!(saturated(1500, 38, 126_000, [false, true]), None);
}

/// What such a medium carries where data always wait, and the simulator says so, too.
fn carries(hub: &str, yields: [bool; 2]) -> Saturated {
    let flows = scenario(&format!(
        r#"{hub}
        [[flow]]
        from = "S"
        to = "E"
        congestion = "reno"
        "#
    ));
    let said = media(&flows).remove(0);
    near(said.without_collisions, 1500.0 / 1589.0, 1e-12);
    let full = saturated(1500, 38, 126_000, yields).unwrap();
    near(said.saturated.unwrap(), full.utilisation, 0.001);
    // Two stations that always have something to send: one packet in three is an acknowledgement's.
    let acks = full.utilisation * 10e6 / (1500.0 * 8.0) / 2.0 * 64.0 * 8.0;
    let loaded = scenario(&format!(
        r#"{hub}
        [[flow]]
        name = "data"
        from = "S"
        to = "D"
        udp = {{ pattern = "constant", rate = "12mbit" }}
        [[flow]]
        name = "acks"
        from = "D"
        to = "S"
        packet = 64
        udp = {{ pattern = "constant", rate = "{acks:.0}bit" }}
        "#
    ));
    let run = xcp_sim::simulate(&loaded, &mut ()).unwrap();
    near(run.summary.links["hub"].utilisation, full.utilisation, 0.002);
    let back = &run.summary.links["hub.reverse"];
    let lost = back.lost as f64 / (back.lost + back.packets) as f64;
    assert!((lost - full.lost).abs() < 0.002, "{lost}, not {}", full.lost);
    full
}
