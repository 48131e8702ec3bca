//! What the policer must do whatever comes: it believes no more than time bears out, lets no flow
//! have more than its share, and takes nothing from flows that obey. The liars themselves, one by
//! one and over every law, are in experiments/liars.

use proptest::prelude::*;
use xcp_engine::exact::view;
use xcp_engine::{
    ForwardHeader, Passage, Policer, PolicerConfig, Preset, Router, RouterConfig, WireFormat,
};

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
/// Capacity, bytes/s: 20 Mbit/s.
const C: u64 = 2_500_000;
const SIZE: u32 = 1500;

fn header(format: WireFormat, rtt_ns: u64, window: f64) -> ForwardHeader {
    ForwardHeader::encode(format, rtt_ns, window, f64::INFINITY)
}

/// A router with its policer.
struct Site {
    router: Router,
    policer: Policer,
}

impl Site {
    fn new(law: Preset, config: PolicerConfig) -> Self {
        let mut router = Router::new(&RouterConfig::preset(law, C), S, 7).expect("valid");
        let policer = Policer::new(&config, &mut router);
        Self { router, policer }
    }

    /// A packet comes, and departs at once unless it is refused; what its header then claims, or
    /// `None`.
    fn packet(
        &mut self,
        now_ns: u64,
        key: u64,
        bytes: u32,
        mut header: ForwardHeader,
    ) -> Option<ForwardHeader> {
        let passage = Passage { now_ns, key, bytes: bytes.into(), segments: 1, queue_bytes: 0 };
        self.policer.admits(&mut self.router, &passage, &mut header).then(|| {
            let claim = header;
            self.router.pass(now_ns, bytes, &mut header);
            claim
        })
    }
}

fn small() -> PolicerConfig {
    PolicerConfig { flows: 64, seed: 5, ..PolicerConfig::DEFAULT }
}

/// X = RTT / window of a header, ns, as the law reads it: a window below one packet is one; 0 where
/// it is unknown.
fn x_of(h: &ForwardHeader, format: WireFormat) -> f64 {
    match (format.decode_rtt(h.rtt), format.decode_window(h.window)) {
        (Some(rtt), Some(window)) => rtt as f64 / window.max(1.0),
        _ => 0.0,
    }
}

proptest! {
    /// Whatever headers of one flow claim, and however they are spaced: the X that are believed add
    /// up to no more than the time since its first packet, but for what the format rounds.
    #[test]
    fn no_more_time_is_believed_than_has_passed(
        format in prop::sample::select(vec![WireFormat::Extended, WireFormat::Classic]),
        packets in prop::collection::vec((0u64..300 * MS, 1u64..70 * S, 0.001f64..100.0), 1..200),
    ) {
        let mut site = Site::new(Preset::Xcp, small());
        let (mut now, mut believed, mut slack) = (S, 0.0, 0.0);
        let mut first = None;
        for (gap, rtt, window) in packets {
            now += gap;
            let begin = *first.get_or_insert(now);
            if let Some(claim) = site.packet(now, 1, 60, header(format, rtt, window)) {
                believed += x_of(&claim, format);
            }
            // The extended format rounds windows to 2^-11 of themselves; the 2005 one says no more
            // than 65535 packets, so that of a round trip of a minute a millisecond is left in each
            // header.
            slack += if format == WireFormat::Classic { rtt as f64 / 65535.0 } else { 1.0 };
            prop_assert!(believed <= (now - begin) as f64 * 1.001 + slack, "{believed} of {}", now - begin);
        }
    }

    /// Whoever asks for nothing but what it is given loses nothing: flows that send at their window
    /// per round trip, take the feedback, and claim what is true, whatever their number, with round
    /// trips that differ by three. (A flow whose round trip is many times that of those who join it
    /// makes room more slowly than its share falls, where the gain follows the round trip; it is
    /// held to its share then.)
    #[test]
    fn an_obedient_flow_is_refused_nothing(
        law in prop::sample::select(vec![Preset::Xcp, Preset::OwnRtt]),
        flows in prop::collection::vec((60u64..180, 1.0f64..10.0, 0u64..20), 1..25),
    ) {
        let mut site = Site::new(law, small());
        let mut state: Vec<(u64, f64, u64)> =
            flows.iter().map(|&(rtt, window, start)| (rtt * MS, window, S + start * S / 2)).collect();
        let mut refused = 0;
        loop {
            let (i, now) = state.iter().enumerate().map(|(i, s)| (i, s.2)).min_by_key(|s| s.1).expect("not empty");
            if now > 60 * S {
                break;
            }
            let (rtt, window, _) = state[i];
            let h = header(WireFormat::Extended, rtt, window);
            let passage = Passage { now_ns: now, key: i as u64, bytes: SIZE.into(), segments: 1, queue_bytes: 0 };
            let mut h = h;
            if site.policer.admits(&mut site.router, &passage, &mut h) {
                site.router.pass(now, SIZE, &mut h);
                let rate = WireFormat::Extended.decode_feedback(h.feedback);
                state[i].1 = (window + rate * rtt as f64 / 1e9 / f64::from(SIZE)).clamp(1.0, 1e6);
            } else {
                refused += 1;
            }
            state[i].2 = now + (rtt as f64 / state[i].1) as u64;
        }
        prop_assert_eq!(refused, 0, "{:?}", site.policer.state());
    }

    /// Ever new addresses: nothing of what they claim is believed, however many there are.
    #[test]
    fn strangers_count_for_nothing(
        gap in 20_000u64..10 * MS,
        rtt in 1u64..65 * S,
        window in 0.001f64..100.0,
    ) {
        let mut site = Site::new(Preset::Xcp, small());
        for i in 0..20_000 {
            let claim = site.packet(S + i * gap, 0x1_0000 + i, 66, header(WireFormat::Extended, rtt, window));
            prop_assert_eq!(claim.map(|h| h.window), Some(0));
        }
    }
}

/// Nine flows that take what they are given and one that sends twice the link's rate whatever
/// happens. (Laws that shuffle by ids say nothing to flows without any: experiments/liars has
/// those.)
#[test]
fn a_blast_gets_no_more_than_its_share_of_the_link() {
    for law in [Preset::Xcp, Preset::OwnRtt] {
        let mut site = Site::new(law, small());
        let rtt = 100 * MS;
        let mut honest = [(10.0, S); 9];
        let (mut blast, mut passed, mut obedient) = (S, 0u64, 0u64);
        let from = 60 * S;
        while blast < 120 * S {
            let (i, next) = (0..9).map(|i| (i, honest[i].1)).min_by_key(|h| h.1).expect("nine");
            if blast <= next {
                let through = site
                    .packet(blast, 99, SIZE, header(WireFormat::Extended, rtt, 300.0))
                    .is_some();
                passed += u64::from(through && blast >= from);
                blast += u64::from(SIZE) * S / (2 * C);
                continue;
            }
            let mut h = header(WireFormat::Extended, rtt, honest[i].0);
            let passage = Passage {
                now_ns: next,
                key: i as u64,
                bytes: SIZE.into(),
                segments: 1,
                queue_bytes: 0,
            };
            assert!(
                site.policer.admits(&mut site.router, &passage, &mut h),
                "an honest packet is refused"
            );
            site.router.pass(next, SIZE, &mut h);
            let change = WireFormat::Extended.decode_feedback(h.feedback) * rtt as f64
                / 1e9
                / f64::from(SIZE);
            honest[i].0 = (honest[i].0 + change).max(1.0);
            honest[i].1 = next + (rtt as f64 / honest[i].0) as u64;
            obedient += u64::from(next >= from);
        }
        let whole = (60 * C / u64::from(SIZE)) as f64;
        assert!(passed as f64 <= 0.1 * whole * 1.05, "{law:?}: {passed} of {whole} packets");
        assert!(obedient as f64 >= 0.9 * whole * 0.97, "{law:?}: {obedient} of {whole} packets");
    }
}

/// One claim of the longest round trip there is moves the control interval no further than the
/// factor by which paths may become longer, and never beyond the longest one configured.
#[test]
fn no_single_claim_moves_the_control_interval_far() {
    let mut site = Site::new(Preset::Xcp, small());
    let mut longest = 0;
    for i in 0..2000 {
        let now = S + i * 50 * MS;
        site.packet(now, 1, 66, header(WireFormat::Extended, 65 * S, 1.0));
        let d = view(&site.router).interval_ns;
        assert!(d <= 4 * longest.max(50 * MS) + MS && d <= S, "{d} ns after {longest}");
        longest = longest.max(d);
    }
    assert!(longest > 900 * MS, "paths that do become longer are followed: {longest}");
}

/// On a path of 16 us, of which the shortest control interval makes 100 us, 20 Mbit/s take six times
/// as long for a packet. A first window passes all the same, and more than that does not; and whoever
/// was refused a packet may still have what a receiver that waits for two packets needs in flight,
/// but no more.
#[test]
fn a_short_path_has_room_for_packets() {
    let mut site = Site::new(Preset::OwnRtt, small());
    let packet_ns = u64::from(SIZE) * S / C;
    let header = header(WireFormat::Extended, 16_000, 1.0);
    let mut passes = |now: u64, packets: u32| {
        (0..packets).filter(|_| site.packet(now, 1, SIZE, header).is_some()).count()
    };
    let mut now = S;
    for _ in 0..1000 {
        now += 2 * packet_ns; // the control interval becomes what headers say
        passes(now, 1);
    }
    assert_eq!(passes(now, 40), 10, "and one has come just now");
    now += 20 * packet_ns;
    assert_eq!(passes(now, 40), 5);
    now += 10 * packet_ns;
    for _ in 0..100 {
        now += 3 * packet_ns;
        assert_eq!(passes(now, 3), 3);
    }
}

/// A policer that nobody needs changes nothing of what the law decides.
#[test]
fn honest_headers_are_left_as_they_are() {
    let mut site = Site::new(Preset::Xcp, small());
    let mut corrected = 0;
    for i in 0..10_000u64 {
        // One packet in ten milliseconds, as its header says; from the second one on there is time
        // behind it.
        let claim =
            site.packet(S + i * 10 * MS, 1, SIZE, header(WireFormat::Extended, 100 * MS, 10.0));
        corrected +=
            u32::from(i > 0 && claim != Some(header(WireFormat::Extended, 100 * MS, 10.0)));
    }
    assert_eq!(corrected, 0, "{:?}", site.policer.state());
}

/// More flows than places: nothing is refused, and it is said.
#[test]
fn a_table_that_is_too_small_lets_traffic_pass_and_says_so() {
    let mut site = Site::new(Preset::Xcp, PolicerConfig { flows: 1, ..small() });
    for i in 0..50_000u64 {
        let passed =
            site.packet(S + i * MS, i % 20, SIZE, header(WireFormat::Extended, 100 * MS, 5.0));
        assert!(passed.is_some());
    }
    let state = site.policer.state();
    assert!(state.crowded > 10_000 && state.refused == 0, "{state:?}");
    let mut roomy = Site::new(Preset::Xcp, small());
    (0..50_000u64).for_each(|i| {
        roomy.packet(S + i * MS, i % 20, SIZE, header(WireFormat::Extended, 100 * MS, 5.0));
    });
    assert_eq!(roomy.policer.state().crowded, 0);
}

/// Whoever gets the place of a flow that is idle does not owe what that one took. It owes it itself,
/// though, if it only rests.
#[test]
fn who_takes_over_a_place_owes_nothing_for_the_last_one() {
    const LIAR: u64 = 99;
    let honest = || header(WireFormat::Extended, 100 * MS, 10.0);
    // One set: three honest flows and the liar have all of its places.
    let mut site = Site::new(Preset::Xcp, PolicerConfig { flows: 1, ..small() });
    let mut now = S;
    let mut step = |site: &mut Site, keys: &[u64]| {
        now += 10 * MS;
        for key in keys {
            assert!(site.packet(now, *key, SIZE, honest()).is_some(), "flow {key}");
        }
        now
    };
    // Twice what the link carries, until a packet is refused.
    let blast = |site: &mut Site, now| {
        let h = header(WireFormat::Extended, 100 * MS, 300.0);
        (0..32).all(|_| site.packet(now, LIAR, SIZE, h).is_some())
    };
    while {
        let now = step(&mut site, &[1, 2, 3]);
        assert!(now < 100 * S, "the liar is caught");
        blast(&mut site, now)
    } {}
    let now = (0..100).map(|_| step(&mut site, &[1, 2, 3])).last().unwrap();
    let mut same = Site { router: site.router.clone(), policer: site.policer.clone() };
    assert_eq!(same.packet(now, LIAR, SIZE, honest()), None, "{:?}", same.policer.state());
    for _ in 0..200 {
        step(&mut site, &[1, 2, 3, 4]);
    }
    assert_eq!(site.policer.state().crowded, 0);
}
