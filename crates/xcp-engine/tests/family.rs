//! The laws of the family, each against its equations in floating point, and all of them against
//! what holds for every law: nothing is raised, and no more is handed out than there is, whatever
//! the headers say.

use proptest::prelude::*;
use xcp_engine::exact::{Num, View, grant, view};
use xcp_engine::{
    ForwardHeader, Input, Preset, Receiver, RobustRouter, Router, RouterConfig, Sendable, Sender,
    SenderConfig, WireFormat, bottleneck_id, flags,
};

const MS: u64 = 1_000_000;
const SEED: u64 = 3;
const C: u64 = 12_500_000;
const Q20: f64 = 1_048_576.0;

fn here() -> u32 {
    bottleneck_id(SEED)
}

/// Packets of one kind: how many in an interval, what they say, and which link limits them.
#[derive(Debug, Clone)]
struct Class {
    rtt_ms: f64,
    window: f64,
    size: u32,
    count: u32,
    /// `None`: without ids.
    by: Option<u32>,
}

impl Class {
    fn header(&self) -> ForwardHeader {
        let h = ForwardHeader::encode(
            WireFormat::Extended,
            (self.rtt_ms * 1e6) as u64,
            self.window,
            f64::INFINITY,
        );
        match self.by {
            Some(bottleneck_id) => {
                ForwardHeader { flags: h.flags | flags::IDS, bottleneck_id, ..h }
            }
            None => h,
        }
    }

    /// X in nanoseconds and the RTT in nanoseconds, as the header has them.
    fn path(&self) -> (f64, f64) {
        let h = self.header();
        let rtt = h.rtt_ns().expect("known") as f64;
        (rtt / h.window_packets().expect("known"), rtt)
    }
}

fn value(n: Num) -> f64 {
    f64::from(n.m) * f64::from(n.e).exp2()
}

/// A router that has seen these packets arrive in one interval of 100 ms, and `other` bytes of
/// other traffic leave; whatever they ask for, it is granted nothing yet.
fn after_an_interval(config: &RouterConfig, classes: &[Class], other: u32) -> (Router, View) {
    let config = RouterConfig { min_interval_ns: 100 * MS, ..config.clone() };
    let mut router = Router::new(&config, 0, SEED).expect("valid");
    // The interval before any RTT is known is 50 ms.
    router.other_departure(50 * MS, 40, true, 0);
    for class in classes {
        for _ in 0..class.count {
            router.arrival(51 * MS, class.size, &class.header(), 0);
        }
    }
    router.other_departure(60 * MS, other, false, 0);
    router.other_departure(100 * MS, 40, true, 0);
    router.other_departure(151 * MS, 40, true, 0);
    let v = view(&router);
    assert_eq!(v.intervals, 2);
    (router, v)
}

/// The terms of the last interval's end, bytes/s, in floating point: from the packets' headers, not
/// from the engine's sums.
struct Model {
    f: f64,
    sum_x: f64,
    input: f64,
    elapsed_s: f64,
    d_s: f64,
}

fn model(config: &RouterConfig, classes: &[Class], v: &View, other: u32) -> Model {
    let sum =
        |f: &dyn Fn(&Class) -> f64| classes.iter().map(|k| f64::from(k.count) * f(k)).sum::<f64>();
    let sum_x = sum(&|k| k.path().0);
    let input = sum(&|k| f64::from(k.size));
    let d_s = sum(&|k| k.path().0 * k.path().1) / sum_x / 1e9;
    let elapsed_s = v.elapsed_ns as f64 / 1e9;
    let f = config.alpha * (C as f64 - (input + f64::from(other)) / elapsed_s);
    Model { f, sum_x, input, elapsed_s, d_s }
}

fn near(got: f64, want: f64, scale: f64) -> bool {
    (got - want).abs() <= 1e-6 * scale.abs().max(want.abs()) + 4.0 / Q20
}

fn class() -> impl Strategy<Value = Class> {
    let by = prop_oneof![3 => Just(Some(here())), 3 => Just(Some(99u32)), 1 => Just(Some(0u32)), 1 => Just(None)];
    (1.0..400f64, 1.0..300f64, 100..1500u32, 1..300u32, by)
        .prop_map(|(rtt_ms, window, size, count, by)| Class { rtt_ms, window, size, count, by })
}

fn classes() -> impl Strategy<Value = Vec<Class>> {
    prop::collection::vec(class(), 1..6)
}

/// What the router would grant a packet of this class, bytes/s.
fn granted(router: &Router, class: &Class) -> f64 {
    let g = grant(router, class.size, &class.header());
    g.fb as f64 * f64::from(g.e).exp2() * if g.below == 1 { -1.0 } else { 1.0 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// XCP-IR: what departed of others is off the capacity, their arrivals are not in the input.
    #[test]
    fn xcp_ir_takes_others_off_the_capacity(classes in classes(), other in 0..1_500_000u32) {
        let config = RouterConfig::preset(Preset::XcpIr, C);
        let (mut router, v) = after_an_interval(&config, &classes, other);
        let m = model(&config, &classes, &v, other);
        prop_assert!(near(v.f as f64 / Q20, m.f, C as f64), "{} {}", v.f as f64 / Q20, m.f);
        prop_assert!(near(v.y as f64 / Q20, m.input / m.elapsed_s, C as f64));
        // Others' arrivals: nothing.
        router.other_arrival(152 * MS, 1500, false, 0);
        prop_assert_eq!(view(&router).input, 0);
    }

    /// P-XCP: spare bandwidth times N / N_b, where N_b is what asks for as much as it gets here; no
    /// more than the bound.
    #[test]
    fn p_xcp_scales_spare_bandwidth(own in 1..100u32, elsewhere in 0..400u32, most in 1..=255u8) {
        let config = RouterConfig { spare_most: most, min_interval_ns: 100 * MS, ..RouterConfig::preset(Preset::PXcp, C) };
        let mut router = Router::new(&config, 0, SEED).expect("valid");
        router.other_departure(50 * MS, 40, true, 0);
        let h = Class { rtt_ms: 100.0, window: 50.0, size: 100, count: 1, by: None }.header();
        // Until the first interval with an RTT is over nothing is granted, so that whoever asks for
        // less than nothing is limited elsewhere.
        for _ in 0..own {
            router.pass(51 * MS, 100, &mut h.clone());
        }
        for _ in 0..elsewhere {
            router.pass(51 * MS, 100, &mut ForwardHeader { feedback: 0x8000 | 20 << 9, ..h });
        }
        router.other_departure(100 * MS, 40, true, 0);
        router.other_departure(151 * MS, 40, true, 0);
        let v = view(&router);
        let ratio = (f64::from(own + elsewhere) / f64::from(own)).min(f64::from(most));
        let f = v.f as f64 / Q20;
        prop_assert!(f > 0.0);
        prop_assert!(near(v.pool_pos as f64 / Q20, v.shuffled as f64 / Q20 + f * ratio, C as f64), "{} for {} times {}", v.pool_pos as f64 / Q20, f, ratio);
        prop_assert_eq!(v.pool_neg, v.shuffled);
    }

    /// iXCP as the paper has it: F for all, the shuffle measured over, given to and taken from
    /// matching packets only.
    #[test]
    fn ixcp_shuffles_what_matches(classes in classes(), other in 0..3_000_000u32, pools in any::<bool>()) {
        let config = RouterConfig { pools, input: Input::All, ..RouterConfig::preset(Preset::Ixcp, C) };
        // Other traffic as input, so that F may be negative.
        let config = RouterConfig { min_interval_ns: 100 * MS, ..config };
        let mut router = Router::new(&config, 0, SEED).expect("valid");
        router.other_departure(50 * MS, 40, true, 0);
        for class in &classes {
            for _ in 0..class.count {
                router.arrival(51 * MS, class.size, &class.header(), 0);
            }
        }
        router.other_arrival(60 * MS, other, false, 0);
        router.other_departure(100 * MS, 40, true, 0);
        router.other_departure(151 * MS, 40, true, 0);
        let v = view(&router);
        let m = model(&config, &classes, &v, other);
        let all = m.input + f64::from(other);
        let (mut xb, mut inb) = (0.0, 0.0);
        for k in classes.iter().filter(|k| k.by == Some(here())) {
            xb += f64::from(k.count) * k.path().0;
            inb += f64::from(k.count) * f64::from(k.size);
        }
        let h = (0.1 * inb / m.elapsed_s - m.f.abs()).max(0.0);
        prop_assert!(near(v.shuffled as f64 / Q20, h, C as f64));
        for k in &classes {
            let x = k.path().0;
            let matches = k.by == Some(here());
            let mut pos = m.f.max(0.0) * x / m.sum_x;
            let mut neg = (-m.f).max(0.0) * f64::from(k.size) / all;
            if matches {
                pos += h * x / xb;
                neg += h * f64::from(k.size) / inb;
            }
            // One packet takes no more than a pool has: with these numbers only where it is nearly
            // alone.
            if !pools || (x < 0.5 * xb.min(m.sum_x)) {
                let got = granted(&router, k);
                prop_assert!(near(got, pos - neg, pos.max(neg) * 10.0 + C as f64 / 10.0 * x / m.sum_x), "{k:?}: {got} for {}", pos - neg);
            }
        }
    }

    /// The cured kind: what is free goes to those limited here, a gain is held out to those limited
    /// elsewhere, and cuts are everybody's.
    #[test]
    fn ixcp_r_gives_to_those_it_limits(classes in classes()) {
        let config = RouterConfig { pools: false, ..RouterConfig::preset(Preset::IxcpR, C) };
        let (router, v) = after_an_interval(&config, &classes, 0);
        let m = model(&config, &classes, &v, 0);
        let (mut xb, mut xu, mut inb) = (0.0, 0.0, 0.0);
        for k in &classes {
            let x = f64::from(k.count) * k.path().0;
            match k.by {
                Some(by) if by == here() => {
                    xb += x;
                    inb += f64::from(k.count) * f64::from(k.size);
                }
                None | Some(0) => xu += x,
                Some(_) => {}
            }
        }
        let (up, down) = (m.f.max(0.0), (-m.f).max(0.0));
        let turnover = 0.1 * inb / m.elapsed_s;
        let h = (turnover - m.f.abs()).max(0.0);
        let one = (m.d_s * 1e9).max(100e6); // what one flow's X sums up to
        for k in &classes {
            let x = k.path().0;
            let s = f64::from(k.size);
            let cut = down * s / m.input;
            let want = match k.by {
                _ if xb == 0.0 => up * x / m.sum_x - cut,
                Some(by) if by == here() => up * x / (xb + xu).max(one) + h * x / xb - h * s / inb - cut,
                None | Some(0) => up * x / m.sum_x - cut,
                Some(_) => {
                    let gain = turnover * x / xb - turnover * s / inb;
                    (up * x / m.sum_x).max(gain.min(0.1 * C as f64 / (m.sum_x - xb).max(one) * x)) - cut
                }
            };
            let got = granted(&router, k);
            let scale = C as f64 * x / one + (turnover * x / xb.max(1.0)).abs() + h * s / inb.max(1.0) + cut;
            prop_assert!(near(got, want, scale), "{k:?}: {got} for {want}");
        }
        prop_assert!(v.fp.m == 0 || value(v.fp) > 0.0);
    }

    /// Whatever a hostile sender or router upstream writes: never raised; nothing changes but
    /// feedback, marks, and the next id where the link has claimed the flow.
    #[test]
    fn never_raised(
        preset in prop::sample::select(Preset::DRAFT.to_vec()),
        words in prop::collection::vec(any::<(u16, u16, u16, bool, u16, u8)>(), 1..150), gap in 1..60 * MS, queue in 0..1_000_000u64,
    ) {
        let mut router = Router::new(&RouterConfig::preset(preset, C), 0, SEED).expect("valid");
        let mut now = 0;
        for (rtt, window, feedback, classic, size, id) in words {
            now += gap;
            let flags = flags::PRESENT | if classic { flags::CLASSIC } else { 0 } | if id & 4 != 0 { flags::IDS } else { 0 };
            let bottleneck_id = [0, 5, here(), u32::MAX][usize::from(id & 3)];
            let before = ForwardHeader { rtt, window, feedback, flags, wait: 14, bottleneck_id, next_bottleneck_id: 6 };
            let mut after = before;
            router.arrival(now, size.into(), &after, queue);
            router.departure(now, size.into(), &mut after, queue);
            prop_assert!(after.feedback_value() <= before.feedback_value());
            let matching = matches!(preset, Preset::Ixcp | Preset::IxcpR);
            let claimed = matching && after.feedback != before.feedback && id & 4 != 0 && before.rtt_ns().is_some() && before.window_packets().is_some();
            prop_assert_eq!(after.next_bottleneck_id, if claimed { here() } else { 6 });
            prop_assert_eq!(ForwardHeader { feedback, flags, next_bottleneck_id: 6, ..after }, before);
        }
    }

    /// In one interval what is given beyond what was asked upstream stays within spare bandwidth
    /// and shuffle, and so does what is taken, whoever sends whatever. The cured rule gives those
    /// whom it does not limit what XCP would give them, and the headroom, without a pool.
    #[test]
    fn sums_stay_within_what_there_is(
        preset in prop::sample::select(Preset::DRAFT.to_vec()), before in classes(), then in prop::collection::vec(class(), 1..6), most in 1..=20u8,
    ) {
        let config = RouterConfig { spare_most: most, ..RouterConfig::preset(preset, C) };
        let (mut router, v) = after_an_interval(&config, &before, 0);
        let unpooled = if preset == Preset::IxcpR {
            then.iter().map(|k| f64::from(k.count) * k.path().0 * (value(Num { m: v.cp_m as u32, e: v.cp_e as i32 }) + value(v.cap))).sum::<f64>()
        } else {
            0.0
        };
        let shared_cut = if preset == Preset::IxcpR {
            then.iter().map(|k| f64::from(k.count) * f64::from(k.size) * value(Num { m: v.cn_m as u32, e: v.cn_e as i32 })).sum::<f64>()
        } else {
            0.0
        };
        let (mut given, mut taken) = (0.0, 0.0);
        for k in &then {
            for _ in 0..k.count {
                let mut h = k.header();
                router.departure(152 * MS, k.size, &mut h, 0);
                given += h.feedback_value().max(0.0);
                taken += (-h.feedback_value()).max(0.0);
            }
        }
        let positive = (v.pool_pos + v.pool_hp) as f64 / Q20 + unpooled;
        let negative = (v.pool_neg + v.pool_hn) as f64 / Q20 + shared_cut;
        // Rounding: a step of the format is 2^-9 of a value.
        prop_assert!(given <= positive * (1.0 + 1.0 / 256.0) + 0.01, "{given} of {positive}");
        prop_assert!(taken <= negative * (1.0 + 1.0 / 256.0) + 0.01, "{taken} of {negative}");
        // And what there is: spare bandwidth, N / N_b times at most, and the shuffle, a quarter
        // more of it where matching packets have pools.
        let f = v.f as f64 / Q20;
        let scale = if preset == Preset::PXcp { f64::from(most) } else { 1.0 };
        prop_assert!(v.pool_pos as f64 / Q20 <= f.max(0.0) * scale + v.shuffled as f64 / Q20 + 1.0);
        prop_assert!(v.pool_neg as f64 / Q20 <= (-f).max(0.0) + v.shuffled as f64 / Q20 + 1.0);
        prop_assert!(v.pool_hp as f64 <= 1.25 * v.shuffled as f64 + 1.0);
    }
}

/// A law that takes another's place works from then on, with what the last interval decided until
/// the next one's end.
#[test]
fn laws_may_change() {
    let flows = [
        Class { rtt_ms: 20.0, window: 10.0, size: 1000, count: 50, by: None },
        Class { rtt_ms: 220.0, window: 110.0, size: 1000, count: 50, by: None },
    ];
    let (mut router, v) = after_an_interval(&RouterConfig::xcp(C), &flows, 0);
    let mean = v.d_m as f64 * (v.d_e as f64).exp2();
    router
        .set_law(&RouterConfig {
            min_interval_ns: 100 * MS,
            ..RouterConfig::preset(Preset::MaxRtt, C)
        })
        .expect("valid");
    assert_eq!(view(&router).cp_m, v.cp_m);
    for class in &flows {
        router.arrival(160 * MS, class.size, &class.header(), 0);
    }
    router.other_departure(400 * MS, 40, true, 0);
    let longest = view(&router).d_m as f64 * (view(&router).d_e as f64).exp2();
    assert!((mean - 120e6).abs() < 1e6 && (longest - 220e6).abs() < 1e6, "{mean} {longest}");
}

/// A sender names the link that last claimed it; its own access link, if it was told to, until then
/// and where nobody does.
#[test]
fn senders_name_the_link_that_limits_them() {
    for own in [0, 7] {
        let config =
            SenderConfig { ids: Some(own), ..SenderConfig::new(WireFormat::Extended, 1500) };
        let mut sender = Sender::new(&config);
        let mut said = Vec::new();
        for next in [None, Some(11), Some(12), Some(own)] {
            if let Some(next_bottleneck_id) = next {
                let h = xcp_engine::ReturnHeader {
                    next_bottleneck_id,
                    ..xcp_engine::ReturnHeader::encode(WireFormat::Extended, 10.0, true)
                };
                sender.feedback(
                    MS,
                    &xcp_engine::ReturnHeader { flags: h.flags | flags::IDS, ..h },
                    100 * MS,
                    true,
                );
            }
            let h = sender.header(2 * MS, 100 * MS, &Sendable::UNLIMITED);
            assert_eq!((h.flags & flags::IDS, h.next_bottleneck_id), (flags::IDS, own));
            said.push(h.bottleneck_id);
        }
        assert_eq!(said, [own, 11, 12, own]);
    }
    // Without ids it names none, whatever comes back.
    let mut sender = Sender::new(&SenderConfig::new(WireFormat::Extended, 1500));
    let h = xcp_engine::ReturnHeader {
        next_bottleneck_id: 9,
        ..xcp_engine::ReturnHeader::encode(WireFormat::Extended, 10.0, true)
    };
    sender.feedback(
        MS,
        &xcp_engine::ReturnHeader { flags: h.flags | flags::IDS, ..h },
        100 * MS,
        true,
    );
    let h = sender.header(2 * MS, 100 * MS, &Sendable::UNLIMITED);
    assert_eq!((h.flags & flags::IDS, h.bottleneck_id), (0, 0));
}

/// What a sender says of keeping its rate only a router that relies on it leaves, and
/// acknowledgements say how it came with the newest packet.
#[test]
fn only_who_relies_on_a_kept_rate_leaves_it_said() {
    for preset in Preset::ALL.iter().copied() {
        let config = RouterConfig::preset(preset, C);
        for kept in [0, flags::KEEPS] {
            let mut h = ForwardHeader::encode(WireFormat::Extended, 100 * MS, 10.0, 1e5);
            h.flags |= kept;
            if preset == Preset::Robust {
                let mut router = RobustRouter::new(&config, 0, 0).expect("valid");
                router.arrival(0, 1500, &h, 0);
                router.departure(0, 1500, &mut h, 0);
                assert_eq!(h.flags, flags::PRESENT | flags::MARK | kept);
            } else {
                let mut router = Router::new(&config, 0, 0).expect("valid");
                router.arrival(0, 1500, &h, 0);
                router.departure(0, 1500, &mut h, 0);
                assert_eq!(h.flags, flags::PRESENT | flags::MARK, "{}", preset.name());
            }
            let mut receiver = Receiver::new(WireFormat::Extended);
            let other = ForwardHeader { flags: h.flags ^ flags::KEEPS, ..h };
            receiver.data(&other);
            receiver.data(&h);
            assert_eq!(receiver.returned().flags, h.flags);
            assert_eq!(receiver.answer(&other).flags, other.flags);
        }
    }
}
