//! What liars put on the wire is what their scenario says, all else is as honest ends have it; and
//! what a claim gains follows the closed form.

use std::path::Path;

use proptest::prelude::*;
use xcp_engine::{ForwardHeader, ReturnHeader, WireFormat, flags};
use xcp_model::run::Run;
use xcp_model::units::Nanos;
use xcp_model::{Claim, Lies, Scenario, Tcp, Traffic};
use xcp_scenario::{Overrides, load};
use xcp_sim::liar::{LyingReceiver, LyingSender, datagram};
use xcp_sim::packet::{Ack, Body, Class, Outbox, Packet, SackBlocks, SackId, Sacks};
use xcp_sim::simulate;
use xcp_sim::tcp::{Receiver, ReceiverConfig, Sender, SenderConfig};

const MS: Nanos = 1_000_000;
const FORMAT: WireFormat = WireFormat::Extended;
const HONEST: Lies = Lies {
    asks_bps: None,
    link: None,
    rtt: None,
    window: None,
    cwnd: None,
    increases: 1.0,
    decreases: 1.0,
    returns_bps: None,
    hides: false,
    blames: false,
    forged: false,
};

fn scenario(flows: &str) -> Scenario {
    let text = format!(
        "duration = \"60s\"\nmeasure = {{ from = \"40s\" }}\n[[link]]\nname \
            = \"bottleneck\"\nbetween = [\"S\", \"D\"]\nrate = \"20mbit\"\ndelay = \"50ms\"\n\
         queue = {{ kind = \"xcp\", limit = \"2bdp\" }}\n{flows}"
    );
    load(Path::new("test.toml"), &text, &Overrides::none())
        .unwrap_or_else(|e| panic!("{e}"))
        .remove(0)
}

/// An XCP connection's settings.
fn tcp() -> Tcp {
    match scenario("[[flow]]\nfrom = \"S\"\nto = \"D\"\ncongestion = \"xcp\"").flows[0].traffic() {
        Traffic::Tcp(tcp) => tcp,
        Traffic::Udp(_) => unreachable!(),
    }
}

#[derive(Default)]
struct Sent {
    packets: Vec<Packet>,
    sacks: Sacks,
}

impl Outbox for Sent {
    fn send(&mut self, packet: &mut Packet) {
        self.packets.push(*packet);
    }
    fn sack(&mut self, blocks: SackBlocks) -> SackId {
        self.sacks.keep(blocks)
    }
}

fn header(packet: &Packet) -> &ForwardHeader {
    match &packet.body {
        Body::Syn { header } | Body::Data { header, .. } => header,
        _ => panic!("{packet:?}"),
    }
}

fn answer(now: Nanos, seq: u64, feedback: f64, syn: bool) -> (Packet, Ack) {
    let ack = Ack {
        window: u32::MAX,
        returned: ReturnHeader::encode(FORMAT, feedback, true),
        sack: SackId::NONE,
        syn,
        stamp_ms: (now / MS) as u32,
    };
    (Packet { seq, timestamp: now - 100 * MS, flow: 0, size: 60, body: Body::Ack(ack) }, ack)
}

/// A liar and an honest sender that get the same answers, a round trip of 100 ms apart, and send
/// alike as long as their windows are alike.
struct Twins {
    liar: LyingSender,
    honest: Sender,
    said: Sent,
    true_: Sent,
    now: Nanos,
    acked: u64,
}

impl Twins {
    fn new(lies: Lies) -> Self {
        let config = SenderConfig::new(0, &tcp(), 1500);
        let mut twins = Twins {
            liar: LyingSender::new(config.clone(), &lies),
            honest: Sender::new(&config),
            said: Sent::default(),
            true_: Sent::default(),
            now: 0,
            acked: 0,
        };
        twins.liar.start(0, &mut twins.said);
        twins.honest.start(0, &mut twins.true_);
        twins.answer(0, 0.0, true);
        twins
    }

    /// Acknowledges so many segments more, a round trip later; what is paced has gone by then.
    fn answer(&mut self, segments: u64, feedback: f64, syn: bool) {
        let until = self.now + 100 * MS;
        while let Some(next) = Some(self.liar.honest().next_timer().min(self.honest.next_timer()))
            .filter(|&next| next < until)
        {
            self.liar.on_timer(next, &mut self.said);
            if self.honest.next_timer() <= next {
                self.honest.on_timer(next, &mut self.true_);
            }
        }
        self.now = until;
        self.acked += segments;
        let (packet, ack) = answer(self.now, self.acked, feedback, syn);
        self.liar.on_ack(self.now, &packet, &ack, &SackBlocks::default(), &mut self.said);
        self.honest.on_ack(self.now, &packet, &ack, &SackBlocks::default(), &mut self.true_);
    }
}

/// The code in a liar's header, by the number in an honest one.
type Said<T> = Box<dyn Fn(Option<T>) -> u16>;

/// Of a liar's packets nothing but the claim differs from an honest sender's, and the claim is what
/// the scenario says, on the SYN and ever after.
#[test]
fn headers_say_what_the_liar_claims() {
    let times = |factor: f64| {
        move |rtt: Option<u64>| rtt.map_or(0, |rtt| FORMAT.encode_rtt((rtt as f64 * factor) as u64))
    };
    let portion = |factor: f64| {
        move |window: Option<f64>| FORMAT.encode_window(window.unwrap_or(0.0) * factor)
    };
    let rtts: [(Claim<Nanos>, Said<u64>); 5] = [
        (Claim::Times(2.0), Box::new(times(2.0))),
        (Claim::Times(10.0), Box::new(times(10.0))),
        (Claim::Is(65_000 * MS), Box::new(|_| FORMAT.encode_rtt(65_000 * MS))),
        (Claim::Is(1000), Box::new(|_| FORMAT.encode_rtt(1000))),
        (Claim::Is(0), Box::new(|_| 0)),
    ];
    let windows: [(Claim<f64>, Said<f64>); 3] = [
        (Claim::Times(0.1), Box::new(portion(0.1))),
        (Claim::Times(10.0), Box::new(portion(10.0))),
        (Claim::Is(0.001), Box::new(|_| FORMAT.encode_window(0.001))),
    ];
    let alike = |twins: &Twins,
                 rtt: &dyn Fn(&ForwardHeader) -> u16,
                 window: &dyn Fn(&ForwardHeader) -> u16| {
        assert_eq!(twins.said.packets.len(), twins.true_.packets.len());
        assert!(
            twins.said.packets.len() > 20 && matches!(twins.said.packets[0].body, Body::Syn { .. })
        );
        for (said, honest) in twins.said.packets.iter().zip(&twins.true_.packets) {
            assert_eq!(
                (said.seq, said.timestamp, said.flow, said.size),
                (honest.seq, honest.timestamp, honest.flow, honest.size)
            );
            let truth = header(honest);
            assert_eq!(
                *header(said),
                ForwardHeader { rtt: rtt(truth), window: window(truth), ..*truth }
            );
        }
    };
    let run = |lies: Lies| {
        let mut twins = Twins::new(lies);
        (0..4).for_each(|_| twins.answer(2, 30_000.0, false));
        twins
    };
    for (claim, expected) in rtts {
        alike(&run(Lies { rtt: Some(claim), ..HONEST }), &|h| expected(h.rtt_ns()), &|h| h.window);
    }
    for (claim, expected) in windows {
        alike(&run(Lies { window: Some(claim), ..HONEST }), &|h| h.rtt, &|h| {
            expected(h.window_packets())
        });
    }
    alike(&run(HONEST), &|h| h.rtt, &|h| h.window);
}

/// Increases and decreases count for so many times what they are. Feedback of F bytes/s moves the
/// window by F x RTT / packet.
#[test]
fn feedback_is_taken_for_what_suits_the_liar() {
    let moved = |lies: Lies, feedback: f64| {
        let mut twins = Twins::new(lies);
        let before = twins.liar.honest().cwnd_packets();
        twins.answer(2, feedback, false);
        twins.liar.honest().cwnd_packets() - before
    };
    let packets = 30_000.0 * 0.1 / 1500.0;
    for (lies, up, down) in [
        (HONEST, 1.0, -1.0),
        (Lies { increases: 10.0, ..HONEST }, 10.0, -1.0),
        (Lies { decreases: 0.0, ..HONEST }, 1.0, 0.0),
        (Lies { increases: 0.5, decreases: 2.0, ..HONEST }, 0.5, -2.0),
    ] {
        for (feedback, times) in [(30_000.0, up), (-30_000.0, down)] {
            let moved = moved(lies, feedback);
            // Feedback has eleven bits and a sign.
            assert!(
                (moved - times * packets).abs() < 0.002 * packets * f64::abs(times).max(0.01),
                "{lies:?}: {moved} for {feedback}"
            );
        }
    }
}

/// Feedback, losses and timeouts move it as little as its own RTT does; headers tell the truth of
/// it and ask for all there is.
#[test]
fn a_kept_window_is_kept() {
    let mut twins = Twins::new(Lies { cwnd: Some(83), ..HONEST });
    for feedback in [-1e6, 1e6, -1e9] {
        twins.answer(2, feedback, false);
        assert_eq!(twins.liar.honest().cwnd_packets(), 83.0);
    }
    // Three duplicates of the last acknowledgement, then silence until the retransmission timer has
    // run out.
    (0..3).for_each(|_| twins.answer(0, -1e6, false));
    let timeout = twins.now + 60_000 * MS;
    twins.liar.on_timer(timeout, &mut twins.said);
    assert!(twins.liar.honest().timeouts() > 0 || twins.liar.honest().stats().fast_recoveries > 0);
    assert_eq!(twins.liar.honest().cwnd_packets(), 83.0);
    for packet in &twins.said.packets {
        let header = header(packet);
        assert_eq!(
            (header.window, header.feedback),
            (FORMAT.encode_window(83.0), 0x7fff),
            "{packet:?}"
        );
    }
}

/// However long data take, acknowledgements seem to leave as soon as ever.
#[test]
fn a_receiver_hides_a_queue() {
    let lies = Lies { hides: true, ..HONEST };
    let mut liar = LyingReceiver::new(Receiver::new(&ReceiverConfig::new(0, &tcp(), 1500)), &lies);
    let mut said = Sent::default();
    let (sent, header) = (60_000 * MS, ForwardHeader::default());
    let syn = Packet { body: Body::Syn { header }, timestamp: sent, ..Packet::default() };
    liar.on_packet(sent + 40 * MS, &syn, &mut said);
    let body = Body::Data { header, retransmission: false };
    for seq in [0, 1] {
        let data = Packet { seq, timestamp: sent + 100 * MS, body, ..Packet::default() };
        liar.on_packet(sent + 300 * MS, &data, &mut said);
    }
    let stamps: Vec<u32> = said
        .packets
        .iter()
        .map(|packet| match packet.body {
            Body::Ack(ack) => ack.stamp_ms,
            _ => panic!("{packet:?}"),
        })
        .collect();
    assert_eq!(stamps, [60_040, 60_140]);
}

/// What one of ten flows has behind a router with more room than the queue after it, Mbit/s, if it
/// lies: when it is found out is chance, so the median of five seeds.
fn median(lies: &str) -> f64 {
    let share = |seed: u64| {
        let text = format!(
            "seed = {seed}\nduration = \"60s\"\nmeasure = {{ from = \"20s\" }}\n\
             [[link]]\nbetween = [\"S\", \"M\"]\nrate = \"50mbit\"\ndelay = \"1ms\"\n\
             queue = {{ kind = \"xcp\", limit = \"2bdp\", law = \"robust\" }}\n\
             [[link]]\nbetween = [\"M\", \"D\"]\nrate = \"20mbit\"\ndelay = \"39ms\"\n\
             queue = {{ limit = \"266p\" }}\n\
             [[flow]]\nname = \"liar\"\nfrom = \"S\"\nto = \"D\"\n\
             congestion = \"xcp-robust\"\n{lies}\n\
             [[flow]]\nname = \"honest\"\ncount = 9\nfrom = \"S\"\nto = \"D\"\n\
             congestion = \"xcp-robust\"\nstart-jitter = \"1s\"\n"
        );
        let scenario =
            load(Path::new("x.toml"), &text, &Overrides::none()).unwrap_or_else(|e| panic!("{e}"));
        simulate(&scenario[0], &mut ()).unwrap().summary.flows[0].goodput / 1e6
    };
    let mut shares = [1, 2, 3, 4, 5].map(share);
    shares.sort_by(f64::total_cmp);
    shares[2]
}

/// Whoever hides the queue that its flow fills is found out by what that queue then drops; for most
/// of the time nothing that its clock says counts.
#[test]
fn a_queue_is_hidden_for_a_while_only() {
    let (honest, liar) = (median(""), median("lies = { hides = true }"));
    assert!((1.6..2.2).contains(&honest), "{honest} Mbit/s");
    assert!(liar < 10.0, "{liar} Mbit/s; all of the time it would have 14");
}

/// Whoever blames TCP for the queue that its flow fills is found out by what that queue then drops,
/// first in eight rounds, then in one.
#[test]
fn tcp_is_blamed_for_a_while_only() {
    let (honest, liar) = (median(""), median("lies = { blames = true }"));
    assert!((1.6..2.2).contains(&honest), "{honest} Mbit/s");
    assert!(liar < 8.0, "{liar} Mbit/s; 10 if it were forgotten, 15 if it were believed");
}

/// Every acknowledgement, the one of the SYN included, says the same and claims that a router said
/// it.
#[test]
fn a_receiver_returns_what_it_likes() {
    let config = ReceiverConfig::new(0, &tcp(), 1500);
    let mut liar =
        LyingReceiver::new(Receiver::new(&config), &Lies { returns_bps: Some(800_000), ..HONEST });
    let mut said = Sent::default();
    let header = ForwardHeader::encode(FORMAT, 100 * MS, 10.0, -50_000.0);
    liar.on_packet(0, &Packet { body: Body::Syn { header }, ..Packet::default() }, &mut said);
    for seq in [0, 1, 3, 2] {
        liar.on_packet(
            MS,
            &Packet {
                seq,
                body: Body::Data { header, retransmission: false },
                ..Packet::default()
            },
            &mut said,
        );
    }
    liar.on_timer(100 * MS, &mut said);
    assert!(said.packets.len() >= 4);
    for packet in &said.packets {
        let Body::Ack(Ack { returned, .. }) = packet.body else { panic!("{packet:?}") };
        assert!(
            (returned.feedback_value() - 100_000.0).abs() < 100.0,
            "{}",
            returned.feedback_value()
        );
        assert_eq!(returned.flags, flags::PRESENT | flags::MARK);
    }
    assert_eq!(liar.honest().delivered_bytes(), 4 * u64::from(config.payload));
}

/// A flood's datagrams count as XCP's, say what they are told to, ask for all there is; forged ones
/// have a key each, all others their flow's.
#[test]
fn datagrams_carry_what_they_claim() {
    for forged in [false, true] {
        let lies = Lies {
            rtt: Some(Claim::Is(65_000 * MS)),
            window: Some(Claim::Is(1.0)),
            forged,
            ..HONEST
        };
        let body = datagram(&lies);
        let mut packets =
            [0, 1, 1 << 20].map(|seq| Packet { seq, flow: 7, size: 66, body, ..Packet::default() });
        let Class::XcpData(header) = packets[0].class() else { panic!("no header") };
        assert_eq!(
            (header.rtt, header.window),
            (FORMAT.encode_rtt(65_000 * MS), FORMAT.encode_window(1.0))
        );
        assert_eq!((header.feedback, header.flags), (0x7fff, flags::PRESENT));
        let honest = Packet {
            seq: 5,
            flow: 7,
            body: Body::Data { header: *header, retransmission: false },
            ..Packet::default()
        };
        let mut keys: Vec<u64> =
            packets.iter().chain([&honest]).map(Packet::policing_key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!((honest.policing_key(), keys.len()), (7, if forged { 4 } else { 1 }));
    }
}

const NINE: &str = "[[flow]]\nname = \"honest\"\ncount = 9\nfrom = \"S\"\nto = \"D\"\ncongestion \
    = \"xcp\"\nstart-jitter = \"1s\"\n";

fn run(lies: &str) -> Run {
    let liar = format!(
        "[[flow]]\nname = \"liar\"\nfrom = \"S\"\nto = \"D\"\ncongestion = \"xcp\"\nstart-jitter \
            = \"1s\"\n{lies}\n"
    );
    simulate(&scenario(&format!("{NINE}{liar}")), &mut ()).unwrap()
}

/// Claiming k times too much RTT per packet of window, one of N flows has k N / (k + N - 1) times
/// its share: routers give each flow what brings its rate, as it claims it, to everybody's.
/// Feedback goes to packets, of which the liar has more, but that only says how fast.
#[test]
fn a_claim_gains_what_the_closed_form_says() {
    for (lies, k) in [
        ("", 1.0),
        ("lies = { rtt = \"2x\" }", 2.0),
        ("lies = { rtt = \"10x\" }", 10.0),
        ("lies = { window = \"0.5x\" }", 2.0),
        ("lies = { window = \"0.1x\" }", 10.0),
        ("lies = { rtt = \"10x\", window = \"10x\" }", 1.0),
    ] {
        let run = run(lies);
        let goodput: Vec<f64> = run.summary.flows.iter().map(|f| f.goodput).collect();
        let gain = goodput[9] / (goodput.iter().sum::<f64>() / 10.0);
        let expected = 10.0 * k / (k + 9.0);
        assert!(
            (gain / expected - 1.0).abs() < 0.03,
            "{lies}: {gain}, by the closed form {expected}"
        );
    }
}

/// A flood's every header counts: ten small ones a second that claim the longest round trip leave
/// the link half empty.
#[test]
fn a_flood_of_headers_takes_the_law_away() {
    let flood = "[[flow]]\nname = \"flood\"\nfrom = \"S\"\nto = \"D\"\npacket = 66\nudp = \
        { rate = \"5280bit\" }\n";
    let utilisation = |lies: &str| {
        simulate(&scenario(&format!("{NINE}{flood}{lies}\n")), &mut ()).unwrap().summary.links["bottleneck"].utilisation
    };
    assert!(utilisation("") > 0.97);
    assert!(utilisation("lies = { rtt = \"65s\", window = \"1p\", forged = true }") < 0.6);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// The same seed gives the same run, whoever lies.
    #[test]
    fn the_same_seed_gives_the_same_run(
        lies in prop::sample::select(vec!["rtt = \"65s\"", "window = \"0.01x\"", "cwnd = 40", "increases = \"3x\", decreases = \"0x\"", "returns = \"10kbit\""]),
        seed in 0u64..1000,
    ) {
        let text = |seed: u64| {
            let mut scenario = scenario(&format!("{NINE}[[flow]]\nname = \"liar\"\nfrom \
                = \"S\"\nto = \"D\"\ncongestion = \"xcp\"\nlies = {{ {lies} }}\n"));
            (scenario.seed, scenario.duration, scenario.measure.from, scenario.measure.to) = (seed, 3000 * MS, 1000 * MS, 3000 * MS);
            format!("{:?}", simulate(&scenario, &mut ()).unwrap())
        };
        prop_assert_eq!(text(seed), text(seed));
        prop_assert!(text(seed) != text(seed + 1));
    }
}
