//! Margins and the fluid model against closed forms and the verdicts known for "An Example of
//! Instability in XCP".

mod common;

use std::f64::consts::SQRT_2;

use common::{class, link, scenario};
use xcp_theory::equilibrium;
use xcp_theory::fluid::{self, Trajectory};
use xcp_theory::margins::{ALPHA_LIMIT, Loop, margins};
use xcp_theory::network::{Gain, Interval, Network};

/// One round trip, β = α²√2: |L| = 1 at ω = α√2/d, where the phase is −135° − α√2 rad.
#[test]
fn one_round_trip_is_stable_below_the_known_limit() {
    for d in [0.001, 0.08, 2.0] {
        for alpha in [0.1, 0.2, 0.4, 0.5, 0.99 * ALPHA_LIMIT, 1.01 * ALPHA_LIMIT, 0.7] {
            let (phase, gain, stable) =
                Loop { alpha, beta: alpha * alpha * SQRT_2, interval: d, flows: vec![(1.0, d)] }
                    .margins()
                    .unwrap();
            assert!(
                (phase - (45.0 - (alpha * SQRT_2).to_degrees())).abs() < 0.1,
                "alpha {alpha}, d {d}: {phase}"
            );
            assert_eq!(stable, alpha < ALPHA_LIMIT, "alpha {alpha}, d {d}");
            assert_eq!(gain > 1.0, stable, "alpha {alpha}, d {d}: gain margin {gain}");
        }
    }
}

/// 1 Gbit/s, one flow of `long` seconds among `short` of 20 ms.
fn example(short: usize, long: f64, gain: Gain) -> Network {
    let mut l1 = link("l1", 1e9, 0.0);
    l1.router.as_mut().unwrap().gain = gain;
    Network {
        links: vec![l1],
        classes: vec![class("long", 1, &[0], long), class("short", short, &[0], 0.02)],
        left_out: 0,
        media: false,
    }
}

#[test]
fn the_example_is_stable_around_its_equilibrium() {
    let of = |network: Network| margins(&network, &equilibrium(&network).unwrap(), 0).unwrap();
    let mean = of(example(9, 0.22, Gain::Uniform));
    assert!((mean.interval - 0.04).abs() < 1e-12);
    assert!((mean.phase_degrees - 23.0).abs() < 1.0, "{}", mean.phase_degrees);
    assert!(mean.stable && mean.gain > 1.0);
    assert!((mean.fairness - 0.55).abs() < 1e-9);
    let own = of(example(9, 0.22, Gain::OwnRtt));
    assert!((own.phase_degrees - 27.0).abs() < 1.0, "{}", own.phase_degrees);
    assert!((own.fairness - 0.1).abs() < 1e-9);
    // Ratio 20.5: the fairness loop of the long flow is beyond π/2, whatever the efficiency loop
    // does; with its own gain it is not.
    let far = of(example(39, 0.82, Gain::Uniform));
    assert!(far.fairness > std::f64::consts::FRAC_PI_2 && !far.stable);
    assert!(of(example(39, 0.82, Gain::OwnRtt)).stable);
}

/// The paper's network as a scenario: its two links and round trips.
fn moved(
    short: usize,
    long_ms: u64,
    paced: bool,
    interval: Interval,
    gain: Gain,
    seconds: u64,
) -> Trajectory {
    let scenario = scenario(&format!(
        r#"
duration = "{seconds}s"
[[link]]
name    = "l1"
between = ["S", "M"]
rate    = "1gbit"
delay   = "10ms"
queue   = {{ kind = "xcp", limit = 100000 }}
[[link]]
name    = "l2"
between = ["M", "D"]
rate    = "2gbit"
delay   = "{}ms"
queue   = {{ kind = "xcp", limit = 100000 }}
[[flow]]
name           = "long"
from           = "S"
to             = "D"
congestion     = "xcp"
packet         = 1000
paced          = {paced}
initial-window = 2
[[flow]]
name           = "short"
count          = {short}
from           = "S"
to             = "M"
congestion     = "xcp"
packet         = 1000
paced          = {paced}
initial-window = 2
"#,
        (long_ms - 20) / 2
    ));
    fluid::with(&scenario, |router| {
        router.interval = interval;
        router.gain = gain;
    })
    .unwrap()
}

/// Rate of the long flow and its deviation over the second half, Mbit/s; when it settled within 20
/// % of the fair share; utilisation.
fn told(moved: &Trajectory, short: usize) -> (f64, f64, Option<f64>, f64) {
    let motion = moved.motion(0, 55.0).unwrap();
    let fair = 1e9 / (short + 1) as f64;
    (
        motion.mean / 1e6,
        motion.deviation / 1e6,
        moved.settled(0, fair, 0.2, 110.0),
        moved.mean_utilisation(0, 55.0),
    )
}

/// With x = w/T (2d) every form of the law settles: with the mean within 1 s, with the own round
/// trip about 3 s.
#[test]
fn paced_senders_settle_in_the_example() {
    let cases = [
        (Interval::Mean, Gain::Uniform, 0.2, 1.3),
        (Interval::Max, Gain::Uniform, 0.5, 3.5),
        (Interval::Mean, Gain::OwnRtt, 2.0, 4.0),
        (Interval::Mean, Gain::OwnRttUnclipped, 2.5, 7.0),
    ];
    for (interval, gain, from, to) in cases {
        let (mean, deviation, settled, utilisation) =
            told(&moved(9, 220, true, interval, gain, 110), 9);
        assert!(
            (mean - 100.0).abs() < 0.5 && deviation < 0.5,
            "{interval:?} {gain:?}: {mean} ± {deviation}"
        );
        assert!(
            settled.is_some_and(|t| t > from && t < to),
            "{interval:?} {gain:?}: settled {settled:?}"
        );
        assert!(utilisation > 0.999, "{interval:?} {gain:?}: {utilisation}");
    }
}

/// The fairness loop's bound, T/d = 5π = 15.7, with paced senders: ratios of 12.5 and 14.5 settle,
/// 16.5 and more do not; scaled by its own round trip the long flow settles at 20.5, too.
#[test]
fn the_fairness_loop_is_unstable_where_its_bound_says() {
    for (short, long, stable) in
        [(23, 500, true), (27, 580, true), (31, 660, false), (35, 740, false), (39, 820, false)]
    {
        let (mean, deviation, settled, _) =
            told(&moved(short, long, true, Interval::Mean, Gain::Uniform, 110), short);
        if stable {
            assert!(deviation < 0.03 * mean && settled.is_some(), "{short}: {mean} ± {deviation}");
        } else {
            assert!(deviation > 15.0 && settled.is_none(), "{short}: {mean} ± {deviation}");
        }
    }
    let (mean, deviation, settled, _) =
        told(&moved(39, 820, true, Interval::Mean, Gain::OwnRtt, 110), 39);
    assert!((mean - 25.0).abs() < 0.2 && deviation < 0.2, "{mean} ± {deviation}");
    assert!(settled.is_some_and(|t| t > 10.0 && t < 15.0), "{settled:?}");
}

/// With (3), senders driven by acknowledgements: the paper's Fig. 2 (the mean never settles and
/// wastes a sixth of the link) and Fig. 3 (the maximum does settle); scaling by the own round trip
/// leaves an oscillation, as a fluid's bursts are never smeared.
#[test]
fn ack_clocked_senders_do_not_settle_with_the_mean() {
    let of = |interval, gain| told(&moved(9, 220, false, interval, gain, 110), 9);
    let (mean, deviation, settled, utilisation) = of(Interval::Mean, Gain::Uniform);
    assert!(
        settled.is_none() && deviation > 0.5 * mean && utilisation < 0.9,
        "{mean} ± {deviation}, {utilisation}"
    );
    let (mean, deviation, settled, utilisation) = of(Interval::Max, Gain::Uniform);
    assert!(
        settled.is_some_and(|t| t < 55.0) && (mean - 100.0).abs() < 2.0 && utilisation > 0.99,
        "{mean} ± {deviation}, {utilisation}"
    );
    let (mean, deviation, ..) = of(Interval::Mean, Gain::OwnRtt);
    assert!((mean - 100.0).abs() < 10.0 && deviation > 1.0, "{mean} ± {deviation}");
}

/// TCP without feedback, and transfers that end.
#[test]
fn what_the_fluid_does_not_know_it_says() {
    let file = |flow: &str| {
        let text = format!(
            "duration = \"1s\"\n[[link]]\nbetween = [\"S\", \"D\"]\nrate = \"1mbit\"\ndelay \
                = \"1ms\"\n[[flow]]\nfrom = \"S\"\nto = \"D\"\n{flow}\n"
        );
        fluid::fluid(&scenario(&text)).unwrap_err()
    };
    let beside = "congestion = \"xcp\"\n[[flow]]\nname = \"other\"\nfrom = \"S\"\nto \
        = \"D\"\ncongestion = \"cubic\"";
    assert_eq!(file(beside), fluid::NoFluid::OtherTcp);
    assert_eq!(file("congestion = \"cubic\""), fluid::NoFluid::NoXcp);
    assert_eq!(file("congestion = \"xcp\"\nbytes = 1000"), fluid::NoFluid::NoXcp);
}
