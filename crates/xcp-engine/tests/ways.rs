//! Several ways through the engine lead to the same place, to the bit: a packet that passes and one
//! that arrives and departs, the short way of the usual packet and the one for all, an answer and
//! its two halves.

use proptest::prelude::*;
use xcp_engine::exact::{
    Work, robust_any, robust_header_any, router_any, router_words, sender_feedback_any,
    sender_header_any, sender_words,
};
use xcp_engine::{
    Answer, CapacityKnown, ForwardHeader, Gain, Input, Interval, Other, Preset, Receiver,
    ReturnHeader, RobustRouter, RobustSender, Rounding, Router, RouterConfig, Sendable, Sender,
    SenderConfig, WireFormat, bottleneck_id, flags,
};

const MS: u64 = 1_000_000;

/// What comes to a router.
#[derive(Debug, Clone, Copy)]
struct Packet {
    /// Time since the one before, nanoseconds; clocks may step back.
    after: i64,
    size: u32,
    /// Bytes waiting.
    backlog: u64,
    /// `None`: other traffic, which is XCP's own or not.
    header: Result<ForwardHeader, bool>,
}

fn header() -> impl Strategy<Value = ForwardHeader> {
    let sensible = (
        1_000..200 * MS,
        0.01..500f64,
        prop_oneof![Just(f64::INFINITY), -1e7..1e7f64, Just(0.0)],
        0..15u8,
        any::<bool>(),
    );
    let sensible = sensible.prop_map(|(rtt, window, feedback, wait, mark)| {
        let h = ForwardHeader::encode(WireFormat::Extended, rtt, window, feedback);
        ForwardHeader { wait, flags: h.flags | if mark { flags::MARK } else { 0 }, ..h }
    });
    let sensible =
        (sensible, prop::option::of(prop::sample::select(vec![0, 77, bottleneck_id(SEED)])))
            .prop_map(|(h, id)| match id {
                Some(bottleneck_id) => {
                    ForwardHeader { flags: h.flags | flags::IDS, bottleneck_id, ..h }
                }
                None => h,
            });
    let any_words = any::<(u16, u16, u16, u8)>().prop_map(|(rtt, window, feedback, flags)| {
        ForwardHeader { rtt, window, feedback, flags: flags & 15, ..Default::default() }
    });
    prop_oneof![12 => sensible, 1 => any_words]
}

fn packets() -> impl Strategy<Value = Vec<Packet>> {
    let after = prop_oneof![20 => 0..300_000i64, 2 => 0..400 * MS as i64, 1 => -50 * MS as i64..0];
    let size = prop_oneof![5 => 40..1500u32, 1 => any::<u32>()];
    let kind = prop_oneof![6 => header().prop_map(Ok), 1 => any::<bool>().prop_map(Err)];
    let packet = (after, size, prop_oneof![Just(0), 0..100_000u64], kind)
        .prop_map(|(after, size, backlog, header)| Packet { after, size, backlog, header });
    prop::collection::vec(packet, 1..600)
}

/// The seed of all routers, from which their link's id follows.
const SEED: u64 = 5;

/// Mostly XCP as published, which has the short way.
fn router() -> impl Strategy<Value = Router> {
    let choices = (
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        prop::sample::select(Preset::DRAFT.to_vec()),
    );
    let choices = prop_oneof![4 => Just((true, false, false, false, Preset::Xcp)), 1 => Just((true, false, false, false, Preset::XcpIr)), 3 => choices];
    (10_000..20_000_000u64, choices, 0..100u32).prop_map(
        |(capacity, (pools, own, longest, other, preset), overhead_bytes)| {
            let law = RouterConfig::preset(preset, capacity);
            let config = RouterConfig {
                pools,
                gain: if own { Gain::OwnRtt } else { law.gain },
                interval: if longest { Interval::Max } else { law.interval },
                input: if other { Input::Xcp } else { law.input },
                overhead_bytes,
                ..law
            };
            Router::new(&config, 1000 * MS, SEED).expect("valid")
        },
    )
}

/// One that remembers its promises.
fn robust_router() -> impl Strategy<Value = RobustRouter> {
    (10_000..20_000_000u64, any::<bool>(), 0..100u32).prop_map(
        |(capacity, measured, overhead_bytes)| {
            let law = RouterConfig::preset(Preset::Robust, capacity);
            let capacity_known =
                if measured { CapacityKnown::Measured } else { law.capacity_known };
            let config = RouterConfig { capacity_known, overhead_bytes, ..law };
            RobustRouter::new(&config, 1000 * MS, SEED).expect("valid")
        },
    )
}

/// Its packets: most are of flows that keep their rates, some are sent at once.
fn robust_packets() -> impl Strategy<Value = Vec<Packet>> {
    let kept = (packets(), prop::collection::vec(0..10u8, 600));
    kept.prop_map(|(packets, kinds)| {
        let keeps = |(mut p, kind): (Packet, u8)| {
            if let Ok(header) = &mut p.header {
                header.flags |= if kind > 0 { flags::KEEPS } else { 0 };
                header.flags |= if kind == 1 { flags::OPENS } else { 0 };
                header.flags |= if kind > 2 { flags::IDS } else { 0 };
            }
            p
        };
        packets.into_iter().zip(kinds).map(keeps).collect()
    })
}

/// What both kinds of routers do. A packet without header is XCP's own or not; `false`: dropped.
trait AnyRouter: Clone {
    fn by_the_long_way(
        &mut self,
        work: Work,
        now: u64,
        size: u32,
        h: &mut ForwardHeader,
        bytes: u64,
    );
    fn arrives(&mut self, now: u64, size: u32, h: &ForwardHeader, bytes: u64);
    fn departs(&mut self, now: u64, size: u32, h: &mut ForwardHeader, bytes: u64);
    fn passes(&mut self, now: u64, size: u32, h: &mut ForwardHeader);
    fn other_arrives(&mut self, now: u64, size: u32, is_xcp: bool, bytes: u64) -> bool;
    fn other_departs(&mut self, now: u64, size: u32, is_xcp: bool, bytes: u64);
    fn other_passes(&mut self, now: u64, size: u32, is_xcp: bool) -> bool;
    fn state_words(&self) -> &[u64];
}

impl AnyRouter for Router {
    fn by_the_long_way(
        &mut self,
        work: Work,
        now: u64,
        size: u32,
        h: &mut ForwardHeader,
        bytes: u64,
    ) {
        router_any(self, work, now, size, h, bytes);
    }
    fn arrives(&mut self, now: u64, size: u32, h: &ForwardHeader, bytes: u64) {
        self.arrival(now, size, h, bytes);
    }
    fn departs(&mut self, now: u64, size: u32, h: &mut ForwardHeader, bytes: u64) {
        self.departure(now, size, h, bytes);
    }
    fn passes(&mut self, now: u64, size: u32, h: &mut ForwardHeader) {
        self.pass(now, size, h);
    }
    fn other_arrives(&mut self, now: u64, size: u32, is_xcp: bool, bytes: u64) -> bool {
        self.other_arrival(now, size, is_xcp, bytes);
        true
    }
    fn other_departs(&mut self, now: u64, size: u32, is_xcp: bool, bytes: u64) {
        self.other_departure(now, size, is_xcp, bytes);
    }
    fn other_passes(&mut self, now: u64, size: u32, is_xcp: bool) -> bool {
        self.other_pass(now, size, is_xcp);
        true
    }
    fn state_words(&self) -> &[u64] {
        router_words(self)
    }
}

/// XCP's own acknowledgement, or TCP's data.
fn other(is_xcp: bool) -> Other {
    if is_xcp { Other::Ack } else { Other::Tcp(9) }
}

impl AnyRouter for RobustRouter {
    fn by_the_long_way(
        &mut self,
        work: Work,
        now: u64,
        size: u32,
        h: &mut ForwardHeader,
        bytes: u64,
    ) {
        robust_any(self, work, now, size, h, bytes);
    }
    fn arrives(&mut self, now: u64, size: u32, h: &ForwardHeader, bytes: u64) {
        self.arrival(now, size, h, bytes);
    }
    fn departs(&mut self, now: u64, size: u32, h: &mut ForwardHeader, bytes: u64) {
        self.departure(now, size, h, bytes);
    }
    fn passes(&mut self, now: u64, size: u32, h: &mut ForwardHeader) {
        self.pass(now, size, h);
    }
    fn other_arrives(&mut self, now: u64, size: u32, is_xcp: bool, bytes: u64) -> bool {
        self.other_arrival(now, size, other(is_xcp), bytes)
    }
    fn other_departs(&mut self, now: u64, size: u32, _is_xcp: bool, bytes: u64) {
        self.other_departure(now, size, bytes);
    }
    fn other_passes(&mut self, now: u64, size: u32, is_xcp: bool) -> bool {
        self.other_pass(now, size, other(is_xcp))
    }
    fn state_words(&self) -> &[u64] {
        self.words()
    }
}

fn passes_as_its_halves<R: AnyRouter>(
    router: R,
    packets: Vec<Packet>,
) -> Result<(), TestCaseError> {
    let (mut whole, mut halves) = (router.clone(), router);
    let mut now = 1000 * MS;
    for (i, p) in packets.into_iter().enumerate() {
        now = now.wrapping_add_signed(p.after);
        match p.header {
            Ok(header) => {
                let (mut a, mut b) = (header, header);
                whole.passes(now, p.size, &mut a);
                halves.arrives(now, p.size, &b, 0);
                // A departure does not ask whether there is a header before it throws its dice.
                halves.departs(now, p.size, &mut b, 0);
                prop_assert_eq!(a, b, "packet {}", i);
            }
            Err(is_xcp) => {
                let admitted = whole.other_passes(now, p.size, is_xcp);
                prop_assert_eq!(admitted, halves.other_arrives(now, p.size, is_xcp, 0));
                if admitted {
                    halves.other_departs(now, p.size, is_xcp, 0);
                }
            }
        }
        prop_assert_eq!(whole.state_words(), halves.state_words(), "packet {}", i);
    }
    Ok(())
}

fn knows_one_law<R: AnyRouter>(
    router: R,
    packets: Vec<Packet>,
    backlogs: bool,
) -> Result<(), TestCaseError> {
    let (mut short, mut any) = (router.clone(), router);
    let mut now = 1000 * MS;
    for (i, p) in packets.into_iter().enumerate() {
        now = now.wrapping_add_signed(p.after);
        match p.header {
            Ok(header) => {
                let (mut a, mut b) = (header, header);
                if backlogs {
                    short.arrives(now, p.size, &a, p.backlog);
                    short.departs(now, p.size, &mut a, p.backlog / 2);
                    any.by_the_long_way(Work::Arrival, now, p.size, &mut b, p.backlog);
                    any.by_the_long_way(Work::Departure, now, p.size, &mut b, p.backlog / 2);
                } else {
                    short.passes(now, p.size, &mut a);
                    any.by_the_long_way(Work::Both, now, p.size, &mut b, 0);
                }
                prop_assert_eq!(a, b, "packet {}", i);
            }
            Err(is_xcp) => {
                let admitted = short.other_arrives(now, p.size, is_xcp, p.backlog);
                prop_assert_eq!(admitted, any.other_arrives(now, p.size, is_xcp, p.backlog));
            }
        }
        prop_assert_eq!(short.state_words(), any.state_words(), "packet {}", i);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// A packet that passes at once leaves state and header as one that arrives and departs.
    #[test]
    fn passing_is_arriving_and_departing(router in router(), packets in packets()) {
        passes_as_its_halves(router, packets)?;
    }

    /// So it is at a router that remembers its promises.
    #[test]
    fn passing_is_arriving_and_departing_with_a_calendar(router in robust_router(), packets in robust_packets()) {
        passes_as_its_halves(router, packets)?;
    }

    /// The usual packet's short way through a router does what the one for all does.
    #[test]
    fn routers_know_one_law(router in router(), packets in packets(), backlogs in any::<bool>()) {
        knows_one_law(router, packets, backlogs)?;
    }

    /// So it is at a router that remembers its promises.
    #[test]
    fn routers_with_a_calendar_know_one_law(router in robust_router(), packets in robust_packets(), backlogs in any::<bool>()) {
        knows_one_law(router, packets, backlogs)?;
    }

    /// So does a sender's.
    #[test]
    fn senders_know_one_rule(
        steps in prop::collection::vec(
            (0..20 * MS, prop_oneof![4 => 1_000..200 * MS, 1 => any::<u64>(), 1 => Just(0)], prop_oneof![3 => Just(u32::MAX), 1 => any::<u32>()],
             any::<u16>(), 0..32u8, prop_oneof![5 => Just(true), 1 => Just(false)], prop_oneof![3 => Just(1), 1 => 0..50u32]),
            1..200),
        honest in prop_oneof![5 => Just(true), 1 => Just(false)],
        max_window in prop_oneof![3 => Just(u32::MAX), 1 => 1..1000u32],
        classic in prop_oneof![5 => Just(false), 1 => Just(true)],
        ids in prop_oneof![Just(None), any::<u32>().prop_map(Some)],
    ) {
        let format = if classic { WireFormat::Classic } else { WireFormat::Extended };
        let ids = ids.filter(|_| !classic);
        let mut short = Sender::new(&SenderConfig { honest, max_window, ids, ..SenderConfig::new(format, 1500) });
        let mut any = short.clone();
        let mut now = 0;
        for (i, (after, srtt, window_limit, feedback, flags, limited, segments)) in steps.into_iter().enumerate() {
            now += after;
            let a = short.header(now, srtt, &Sendable { window_limit });
            prop_assert_eq!(a, sender_header_any(&mut any, now, srtt, window_limit), "step {}", i);
            // Rates of up to a few packets per millisecond, most of them, and marked: else the
            // window would always be at a bound.
            let feedback = if i % 8 == 7 { feedback } else { feedback & 0x81ff | 32 << 9 };
            let h = ReturnHeader { feedback, flags: if i % 8 == 7 { flags } else { a.flags | flags::MARK }, next_bottleneck_id: i as u32, ..Default::default() };
            short.feedback_segments(now, &h, srtt, limited, segments);
            sender_feedback_any(&mut any, now, &h, srtt, limited, segments);
            if i % 50 == 49 {
                short.on_loss(true);
                any.on_loss(true);
            }
            prop_assert_eq!(sender_words(&short), sender_words(&any), "step {}", i);
        }
    }

    /// So does a robust sender's, whatever it says: with a window of less than a packet or a bound,
    /// late, limited, after losses, where acknowledgements wait on their way.
    #[test]
    fn robust_senders_know_one_rule(
        steps in prop::collection::vec(
            (20 * MS..60 * MS, prop_oneof![8 => Just(40 * MS), 2 => 38 * MS..43 * MS, 1 => 1_000..400 * MS],
             0..=u16::MAX, prop_oneof![3 => Just(u32::MAX), 1 => 1..1000u32], prop::sample::select(vec![false, false, true]),
             prop_oneof![9 => Just(0u32), 1 => 1..9u32], prop_oneof![6 => Just(0u32), 1 => 1..200u32]),
            1..200),
        first in 1..20u32,
        routed in prop_oneof![5 => Just(true), 1 => Just(false)],
        waits in any::<bool>(),
    ) {
        let mut short = RobustSender::new(1500, first, Some(7));
        let mut any = short.clone();
        let mut now = 1000 * MS;
        for (i, (after, rtt_ns, feedback, window_limit, late, lost, waited)) in steps.into_iter().enumerate() {
            now += after;
            let mut a = ForwardHeader::default();
            short.write_header(now, &Sendable { window_limit }, late, &mut a);
            prop_assert_eq!(a, robust_header_any(&mut any, now, window_limit, late), "step {}", i);
            prop_assert_eq!(short.words(), any.words(), "step {}", i);
            // As in `senders_know_one_rule`.
            let returned = ReturnHeader {
                feedback: feedback & 0x81ff | 30 << 9,
                flags: a.flags | if routed { flags::MARK } else { 0 },
                ..Default::default()
            };
            let answer = Answer {
                now_ns: now, sent_ns: now - rtt_ns, rtt_ns, srtt_ns: rtt_ns, returned, answers: 1, covered: 2,
                delivered: 10, lost, missing: lost, stamp_ms: (now / MS) as u32 - waited, stamped: waits, limited: true,
                ..Default::default()
            };
            short.answered(&answer);
            any.answered(&answer);
        }
    }

    /// An answer is what data and an acknowledgement right after it give, whatever is still in the
    /// sum.
    #[test]
    fn answers_are_data_and_return(headers in prop::collection::vec((header(), any::<bool>()), 1..100), classic in any::<bool>()) {
        let mut one = Receiver::new(if classic { WireFormat::Classic } else { WireFormat::Extended });
        let mut two = one.clone();
        for (h, more) in headers {
            if more {
                one.data(&h);
                two.data(&h);
            }
            two.data(&h);
            prop_assert_eq!(one.answer(&h), two.returned());
        }
    }
}

/// A lone packet's feedback goes home as it came, which is what decoding and encoding it would make
/// of it; of what they cannot express nothing is lost.
#[test]
fn a_lone_code_is_its_own_sum() {
    let format = WireFormat::Extended;
    for code in 0..=u16::MAX {
        let h = ForwardHeader { feedback: code, ..ForwardHeader::encode(format, 1, 1.0, 0.0) };
        let mut r = Receiver::new(format);
        let back = r.answer(&h).feedback;
        let rest = r.returned().feedback;
        if code & 0x7fff < 54 << 9 {
            assert_eq!(
                (back, rest),
                (format.encode_feedback(format.decode_feedback(code), Rounding::TowardsZero), 0),
                "{code:#06x}"
            );
        } else {
            let sum = format.decode_feedback(back) + format.decode_feedback(rest);
            assert!((sum / format.decode_feedback(code) - 1.0).abs() < 1e-5, "{code:#06x}: {sum}");
        }
        // Beside a packet that takes its share back it is summed up.
        let mut r = Receiver::new(format);
        r.data(&h);
        r.data(&ForwardHeader { feedback: code ^ 0x8000, ..h });
        assert_eq!(r.returned().feedback, 0, "{code:#06x}");
    }
}
