//! The router that remembers its promises among peers that lie: garbage in headers, and claims.
//! What some of them gain is in docs/robust-others.md; here is what must hold whatever they say.

use xcp_engine::{ForwardHeader, Preset, RobustRouter, RouterConfig, WireFormat, flags};

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
/// 100 Mbit/s, bytes/s.
const C: u64 = 12_500_000;

fn router(capacity: u64) -> RobustRouter {
    RobustRouter::new(&RouterConfig::preset(Preset::Robust, capacity), 0, 7).expect("valid")
}

/// splitmix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn garbage(state: &mut u64) -> ForwardHeader {
    let mut h = ForwardHeader::encode(WireFormat::Extended, 0, 0.0, 0.0);
    let r = random(state);
    (h.rtt, h.window, h.feedback) = (r as u16, (r >> 16) as u16, (r >> 32) as u16);
    let r = random(state);
    h.wait = r as u8;
    h.flags = (r >> 8) as u8 | flags::PRESENT;
    h.bottleneck_id = if r & 1 << 40 == 0 { 0 } else { (r >> 16) as u32 };
    h.next_bottleneck_id = (r >> 20) as u32;
    h
}

/// A million garbage headers among an honest flow's: parts end when they are over, the capacity is
/// what was told, and what is offered in a part is no more than there is and what would fill the
/// target in d.
#[test]
fn a_million_garbage_headers() {
    for seed in 1..=4 {
        let (mut r, mut state) = (router(C), seed);
        let (mut now, mut started, mut intervals) = (0, 0, 0);
        let mut given = 0.0;
        for i in 0..1_000_000u64 {
            let honest = i % 10 == 0;
            let size = if honest { 1500 } else { 40 + (random(&mut state) % 1461) as u32 };
            now += u64::from(size) * S / C;
            let backlog = random(&mut state) % 3 * 1500;
            let mut h = if honest {
                ForwardHeader::encode(WireFormat::Extended, 80 * MS, 100.0, f64::INFINITY)
            } else {
                garbage(&mut state)
            };
            let before = r.state();
            r.arrival(now, size, &h, backlog);
            let after = r.state();
            if after.intervals != intervals {
                (intervals, started, given) = (after.intervals, now, 0.0);
                // Q_T is two packets.
                let most = (C as f64 + 3000.0 / after.mean_rtt_s) * 8.0;
                assert!(after.phi_bps <= 1.001 * most, "seed {seed}, {i}: {after:?}, {most}");
            } else {
                let over = now.saturating_sub(started) as f64 / 1e9;
                assert!(over <= before.control_interval_s + 1e-6, "seed {seed}, {i}: {before:?}");
            }
            assert!(after.control_interval_s <= after.max_interval_s);
            assert!(after.capacity_bps <= C as f64 * 8.0);
            assert!(r.promised_bps().is_finite() && r.tcp().0 <= 0.2001);
            r.departure(now, size, &mut h, backlog);
            if honest {
                given += h.feedback_value().max(0.0) * 8.0;
                let state = r.state();
                let most = state.phi_bps.max(0.0) + 1.25 * state.shuffled_bps;
                // feedback is rounded to 10 bits
                assert!(given <= 1.01 * most + 8.0, "seed {seed}, {i}: {given} of {most}");
            }
        }
        assert!(intervals > 10, "seed {seed}: {intervals}");
    }
}

/// Who asks to give up more than anybody has gives up nothing that others could be promised.
#[test]
fn a_decrease_that_nobody_said_is_not_promised_to_others() {
    let mut r = router(C);
    let mut most = 0.0f64;
    for i in 0..20_000u64 {
        let now = i * 1500 * S / C;
        let mut h = ForwardHeader::encode(WireFormat::Extended, 80 * MS, 60.0, f64::INFINITY);
        if i % 100 == 99 {
            h = ForwardHeader::encode(WireFormat::Extended, 80 * MS, 10.0, -1e10);
        }
        r.arrival(now, 1500, &h, 0);
        r.departure(now, 1500, &mut h, 0);
        if now > S {
            most = most.max(r.state().phi_bps);
        }
    }
    assert!(most < 0.1 * C as f64 * 8.0, "{most} of a link that is full");
}

/// Nobody's packets are further apart than the longest round trip that is believed.
#[test]
fn a_longest_interval_bounds_what_a_header_counts_for() {
    let config =
        RouterConfig { max_interval_ns: 200 * MS, ..RouterConfig::preset(Preset::Robust, C) };
    let mut r = RobustRouter::new(&config, 0, 7).expect("valid");
    for i in 0..8000u64 {
        let now = i * 10 * MS;
        let mut h = ForwardHeader::encode(WireFormat::Extended, 65 * S, 1.0, 0.0);
        r.arrival(now, 66, &h, 0);
        r.departure(now, 66, &mut h, 0);
    }
    let flows = r.state().flows_estimated;
    assert!((19.0..21.0).contains(&flows), "a hundred headers a second of 0.2 s each: {flows}");
}

/// Sums of X do not wrap, however many headers come within the longest interval.
#[test]
fn sums_do_not_wrap() {
    let mut r = router(C);
    let rtt = WireFormat::Extended.encode_rtt(65 * S);
    let mut h = ForwardHeader::encode(WireFormat::Extended, 65 * S, 1.0, 0.0);
    assert_eq!(h.rtt, rtt);
    // in 2^-8 ns: so many come to a little more than 2^64
    let n = u64::MAX / (h.rtt_ns().expect("said") << 8) + 2;
    for i in 0..=n {
        if i == n {
            r.set_capacity(C + 1); // ends the part
        }
        r.arrival(i * 1000, 66, &h, 0);
        r.departure(i * 1000, 66, &mut h, 0);
    }
    let flows = r.state().flows_estimated;
    assert!(flows > 1e5, "{flows} where {n} headers claim 65 s each in {} s", n as f64 / 1e6);
}
