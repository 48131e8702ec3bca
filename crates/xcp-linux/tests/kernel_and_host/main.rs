//! The router programs in the kernel against the host's build of the same engine: random and
//! hostile frames, one after another, must leave the same bytes, the same state and the same
//! counters, without a policer and with one, and by the law that remembers its promises. The host's
//! side is [`host`], what is shown to both [`frames`]; the sender for that law is in [`senders`].

mod frames;
mod host;
mod senders;

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use xcp_engine::{
    Policer, PolicerConfig, PolicerState, Preset, RobustRouter, Router, RouterConfig, bottleneck_id,
};
use xcp_linux::police::{Police, PoliceBy};
use xcp_linux::rehearsal::{Rehearsal, Sight};
use xcp_linux::router::RouterCounts;

use frames::{claim, law, robust_law, sent, tcp};
use host::{Found, Host, Law, Packet, find_tcp, same};

const MS: u64 = 1_000_000;

/// Of all routers here.
const SEED: u64 = 42;

/// Their link's.
fn id() -> u32 {
    bottleneck_id(SEED)
}

/// The program, or why it is not here.
fn loaded(police: Option<&Police>) -> Option<Rehearsal> {
    here(Rehearsal::load_policed(false, police))
}

fn here(program: xcp_linux::Result<Rehearsal>) -> Option<Rehearsal> {
    match program {
        Ok(kernel) => Some(kernel),
        // A program that the verifier refuses must not pass for a kernel that has no BPF.
        Err(e) if xcp_linux::error::is_root() && e.to_string().contains("router program") => {
            panic!("{e}")
        }
        Err(e) => {
            xcp_skip::skipped!("root", "the kernel's build of the router against the host's: {e}");
            None
        }
    }
}

/// Shows both the same packets, `cases` times anew; what the policer did in all of them. A
/// processor that is emulated (scripts/kernels) does a part of them: `XCPNET_CASES_DIVIDED_BY` = 10
/// is a tenth.
fn same_bits(kernel: &Rehearsal, police: Option<&Police>, cases: u32) -> PolicerState {
    let all = Cell::new(PolicerState::default());
    same_bits_of(cases, law(), |law, packets| {
        let mut router = Router::new(&law, 0, SEED).unwrap();
        let policer = police.map(|police| (Policer::new(&police.config, &mut router), police.by));
        kernel
            .begin_policed(
                law.capacity_bytes_per_sec,
                &router,
                policer.as_ref().map(|(policer, _)| policer),
            )
            .unwrap();
        let mut host = Host::new(Law::Draft(Box::new(router)), policer);
        alike(kernel, &mut host, &packets, || {
            let (state, counts) = kernel.read()?;
            Ok((state.words().to_vec(), counts))
        })?;
        if let Some((policer, _)) = &host.policer {
            let (words, table) =
                kernel.read_policer().map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(&words, policer.words());
            prop_assert_eq!(&table[..], policer.table());
            let (was, more) = (all.get(), policer.state());
            all.set(PolicerState {
                refused: was.refused + more.refused,
                corrected: was.corrected + more.corrected,
                crowded: was.crowded + more.crowded,
                ..more
            });
        }
        Ok(())
    });
    all.get()
}

/// What tries so many cases, or fewer on an emulated processor; and how many.
fn runner(cases: u32) -> (TestRunner, u32) {
    let part: u32 = std::env::var("XCPNET_CASES_DIVIDED_BY")
        .ok()
        .and_then(|part| part.parse().ok())
        .unwrap_or(1);
    let cases = (cases / part.max(1)).max(10);
    // Without persistence: failures show themselves with their seed, and the tree stays clean.
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    (TestRunner::new(config), cases)
}

/// Tries laws of a kind with random packets. Returns how often.
fn same_bits_of(
    cases: u32,
    laws: impl Strategy<Value = RouterConfig>,
    show: impl Fn(RouterConfig, Vec<Packet>) -> Result<(), TestCaseError>,
) -> u32 {
    let packets = prop::collection::vec(sent(), 1..200);
    let (mut runner, cases) = runner(cases);
    let outcome = runner.run(&(laws, packets), |(law, packets)| show(law, packets));
    if let Err(e) = outcome {
        panic!("{e}");
    }
    cases
}

/// Shows both the same packets; `read`: the kernel's state and counters.
fn alike(
    kernel: &Rehearsal,
    host: &mut Host,
    packets: &[Packet],
    read: impl Fn() -> xcp_linux::Result<(Vec<u64>, RouterCounts)>,
) -> Result<(), TestCaseError> {
    let mut now = 1_000;
    for packet in packets {
        now += packet.after_ns;
        let wire_bytes = packet.frame.len() as u32 + packet.extra_wire;
        let sight = Sight {
            frame: &packet.frame,
            now_ns: now,
            backlog: packet.backlog,
            wire_bytes,
            segments: packet.segments,
        };
        let left = kernel.admit(&sight).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let should = host.pass(packet, now);
        prop_assert_eq!(
            left.is_some(),
            should.is_some(),
            "whether it passes: {:02x?}",
            packet.frame
        );
        if let (Some(left), Some(should)) = (left, should) {
            let tcp =
                if let Found::Tcp(tcp, _) = find_tcp(&packet.frame) { Some(tcp) } else { None };
            prop_assert!(
                same(&left, &should, tcp),
                "frame {:02x?}\nleft  {:02x?}\nshould {:02x?}",
                packet.frame,
                left,
                should
            );
        }
        let (state, counted) = read().map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(counted, host.counts);
        prop_assert_eq!(&state[..], host.law.words());
    }
    Ok(())
}

/// Shows both the same packet of one segment, behind which nothing waits. Whether it passes, with
/// the kernel as on the host.
fn passes(kernel: &Rehearsal, host: &mut Host, frame: Vec<u8>, now_ns: u64) -> bool {
    let wire_bytes = frame.len() as u32;
    let sight = Sight { frame: &frame, now_ns, backlog: 0, wire_bytes, segments: 1 };
    let left = kernel.admit(&sight).unwrap();
    let packet = Packet { frame, after_ns: 0, backlog: 0, extra_wire: 0, segments: 1 };
    assert_eq!(left.is_some(), host.pass(&packet, now_ns).is_some(), "at {now_ns} ns");
    left.is_some()
}

#[test]
fn the_same_bits_in_the_kernel_and_on_the_host() {
    let Some(kernel) = loaded(None) else { return };
    same_bits(&kernel, None, 1000);
}

/// Over many parts of a control interval, so that promises come due and the calendar's slots change
/// their length.
#[test]
fn the_same_bits_by_the_law_that_remembers() {
    let Some(kernel) = here(Rehearsal::load_robust(false)) else { return };
    let parts = Cell::new(0);
    let cases = same_bits_of(300, robust_law(), |law, packets| {
        let router = RobustRouter::new(&law, 0, SEED).unwrap();
        kernel.begin_robust(law.capacity_bytes_per_sec, &router).unwrap();
        let mut host = Host::new(Law::Robust(router), None);
        alike(&kernel, &mut host, &packets, || {
            let (state, counts) = kernel.read_robust()?;
            Ok((state.words().to_vec(), counts))
        })?;
        if let Law::Robust(router) = &host.law {
            parts.set(parts.get() + router.state().intervals);
        }
        Ok(())
    });
    assert!(parts.get() > 3 * u64::from(cases), "{} parts in {cases} cases", parts.get());
}

/// Two flows of TCP send three times the link's rate, whatever they lose, and one of XCP's sends a
/// tenth: the law has TCP's packets dropped, the same ones in the kernel and on the host.
#[test]
fn the_same_packets_of_tcp_are_dropped() {
    let capacity = 1_250_000;
    let Some(kernel) = here(Rehearsal::load_robust(false)) else { return };
    let law = RouterConfig::preset(Preset::Robust, capacity);
    let router = RobustRouter::new(&law, 0, SEED).unwrap();
    kernel.begin_robust(capacity, &router).unwrap();
    let mut host = Host::new(Law::Robust(router), None);
    for i in 0..25_000u64 {
        let mut frame = claim(i % 2 == 0, 8.0);
        if i % 30 != 0 {
            frame[54..66].fill(1); // no option of ours
        }
        passes(&kernel, &mut host, frame, 1_000 + i * 400_000);
    }
    let (state, counts) = kernel.read_robust().unwrap();
    assert_eq!(&state.words()[..], host.law.words());
    assert_eq!(counts, host.counts);
    let (_, flows) = state.tcp();
    assert!(counts.steered > 100 && (1.5..2.5).contains(&flows), "{flows} flows, {counts:?}");
}

/// Few places for the senders, so that they take them from each other, too.
#[test]
fn the_same_bits_where_senders_are_policed() {
    for by in [PoliceBy::Flow, PoliceBy::ADDRESS, PoliceBy::Source { v4: 31, v6: 127 }] {
        let config =
            PolicerConfig { flows: 2, longest_rtt_ns: 400 * MS, seed: 0x1234_5678_9abc_def0 };
        let police = Police { config, by };
        let Some(kernel) = loaded(Some(&police)) else { return };
        let done = same_bits(&kernel, Some(&police), 400);
        assert!(done.corrected > 0, "{by}: nobody was corrected: {done:?}");
        assert!(by != PoliceBy::Flow || done.crowded > 0, "{by}: there was room for all: {done:?}");
    }
}

/// Two senders, one of which sends four times the link's rate whatever it is told: it is refused
/// packets, the same ones in the kernel and on the host.
#[test]
fn the_same_packets_are_refused() {
    let capacity = 1_250_000;
    let police = Police {
        config: PolicerConfig { flows: 16, longest_rtt_ns: 1_000 * MS, seed: 9 },
        by: PoliceBy::Flow,
    };
    for law in [Preset::Xcp, Preset::OwnRtt] {
        let Some(kernel) = loaded(Some(&police)) else { return };
        let mut router = Router::new(&RouterConfig::preset(law, capacity), 0, SEED).unwrap();
        let policer = Policer::new(&police.config, &mut router);
        kernel.begin_policed(capacity, &router, Some(&policer)).unwrap();
        let policer = Some((policer, police.by));
        let mut host = Host::new(Law::Draft(Box::new(router)), policer);
        let mut refused = [0, 0];
        for i in 0..40_000u64 {
            // Every tenth packet is the honest one's; RTT 10 ms, a window of five packets and of
            // forty.
            let honest = i % 10 == 0;
            let frame = claim(!honest, if honest { 5.0 } else { 40.0 });
            let passed = passes(&kernel, &mut host, frame, 1_000 + i * 300_000);
            refused[usize::from(!honest)] += u32::from(!passed);
        }
        let (words, _) = kernel.read_policer().unwrap();
        assert_eq!(Some(&words), host.policer.as_ref().map(|(policer, _)| policer.words()));
        assert!(refused[0] == 0 && refused[1] > 10_000, "{law:?}: {refused:?}");
    }
}

/// A forward header on a packet that carries no data says nothing to the law, whatever it claims:
/// the packet is other traffic, and it may not ask for more than it has. What Ethernet fills a frame
/// up with is no data. With a byte of data it counts.
#[test]
fn a_claim_without_data_is_not_believed() {
    let Some(kernel) = here(Rehearsal::load(false)) else { return };
    let asked: u16 = 0x6000;
    // RTT 1 ms, a window of one packet, and a request, as an extended and as a classic option.
    let mut extended = vec![254, 12, 0x58, 0x43, 0x60, 0, 0x53, 0xd1, 0x2c, 0];
    extended.extend(asked.to_be_bytes());
    let mut classic = vec![14, 8];
    classic.extend(asked.to_be_bytes());
    classic.extend([0, 1, 0, 1]);
    for (option, feedback) in [(extended, 10), (classic, 2)] {
        for (data, padding) in [(0, 0), (0, 6), (1, 0), (1, 6)] {
            let mut frame = tcp(false, &option, data);
            frame.resize(frame.len() + padding, 0);
            let router = Router::new(&RouterConfig::xcp(1_250_000), 0, SEED).unwrap();
            kernel.begin(1_250_000, &router).unwrap();
            for i in 1..=10 {
                let sight = Sight {
                    frame: &frame,
                    now_ns: i * 10 * MS,
                    backlog: 0,
                    wire_bytes: frame.len() as u32,
                    segments: 1,
                };
                let left = kernel.show(&sight).unwrap();
                let at = 54 + feedback;
                let left = u16::from_be_bytes([left[at], left[at + 1]]);
                assert!(
                    data > 0 || left == 0,
                    "{left:#06x} of {asked:#06x} left to a packet without data"
                );
            }
            let (state, counts) = kernel.read().unwrap();
            let (believed, others) = if data > 0 { (10, 0) } else { (0, 10) };
            assert_eq!(
                (counts.processed, counts.other, counts.contended),
                (believed, others, 0),
                "{data} bytes of data and {padding} of padding"
            );
            assert_eq!(state.state().intervals > 0, data > 0, "{:?}", state.state());
        }
    }
}

/// Acknowledgements of TCP are no flows to be steered, on Ethernet, which fills them up to 60 bytes,
/// as little as elsewhere.
#[test]
fn acknowledgements_with_padding_are_not_dropped() {
    let capacity = 1_250_000;
    let Some(kernel) = here(Rehearsal::load_robust(false)) else { return };
    for data in [0, 6] {
        let law = RouterConfig::preset(Preset::Robust, capacity);
        let router = RobustRouter::new(&law, 0, SEED).unwrap();
        kernel.begin_robust(capacity, &router).unwrap();
        let mut host = Host::new(Law::Robust(router), None);
        for i in 0..2_000u64 {
            let mut frame = tcp(i % 2 == 0, &[], data);
            frame.resize(60, 0);
            passes(&kernel, &mut host, frame, 1_000 + i * MS);
            passes(&kernel, &mut host, claim(true, 8.0), 2_000 + i * MS);
        }
        let (state, _) = kernel.read_robust().unwrap();
        let (_, flows) = state.tcp();
        assert_eq!(flows > 1.5, data > 0, "{flows} flows with {data} bytes of data");
    }
}
