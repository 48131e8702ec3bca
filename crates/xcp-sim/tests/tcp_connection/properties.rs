//! Whatever the network does, everything arrives, once and in order, and the sender never loses its
//! way.

use crate::pipe::*;
use proptest::prelude::*;
use xcp_model::{Congestion, LossResponse, Recovery, RtoPolicy, Tcp, WireFormat, XcpSender};
use xcp_sim::packet::Body;

fn connection() -> impl Strategy<Value = Tcp> {
    let congestion =
        prop_oneof![Just(Congestion::Reno), Just(Congestion::Cubic), Just(Congestion::Xcp)];
    let recovery = prop_oneof![
        Just(Recovery::Reno),
        Just(Recovery::RenoNs2),
        Just(Recovery::NewRenoImpatient),
        Just(Recovery::NewRenoSlowButSteady),
        Just(Recovery::Sack),
        Just(Recovery::SackLinux)
    ];
    (
        congestion,
        recovery,
        any::<[bool; 7]>(),
        1u32..40,
        1u64..300,
        prop::option::of(3_000u64..60_000),
        prop::option::of(3_000u64..60_000),
    )
        .prop_map(
            |(
                congestion,
                recovery,
                flags,
                initial_window,
                segments,
                receive_buffer,
                send_buffer,
            )| Tcp {
                xcp_sender: XcpSender::Window,
                loss_response: if flags[0] { LossResponse::None } else { LossResponse::Halve },
                paced: flags[1],
                wire: if flags[2] { WireFormat::Classic } else { WireFormat::Extended },
                bytes: Some(segments * 1400 - 777),
                receive_buffer,
                send_buffer,
                window_scaling: flags[3],
                delayed_ack: flags[4],
                handshake: flags[5],
                initial_window,
                rto_policy: if flags[6] { RtoPolicy::BackOff } else { RtoPolicy::Fixed },
                ..settings(congestion, recovery)
            },
        )
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Pass),
        2 => Just(Fate::Lose),
        1 => (0u64..300).prop_map(|ms| Fate::Twice(ms * MS)),
        1 => (0u64..300).prop_map(|ms| Fate::Late(ms * MS)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// Loss, duplication and reordering in both directions, then a network that behaves: the
    /// transfer completes, with exactly the bytes asked for.
    #[test]
    fn everything_arrives(tcp in connection(), fates in prop::collection::vec((fate(), fate()), 0..250), spacing in 0u64..3) {
        let total = tcp.bytes.unwrap();
        let mut highest = 0;
        let script: Script = Box::new(move |data, packet, number, _| {
            if let Body::Data { retransmission, .. } = packet.body {
                // "Retransmission" must mean just that, and new data must go out in order, each
                // segment once.
                assert_eq!(retransmission, packet.seq < highest);
                assert!(packet.seq <= highest);
                highest = highest.max(packet.seq + 1);
            }
            fates.get(number as usize).map_or(Fate::Pass, |f| if data { f.0 } else { f.1 })
        });
        let mut pipe = Pipe::new(&tcp, 20 * MS, spacing * MS, script);
        pipe.start();
        let mut before = (0, 0);
        while pipe.run(pipe.now + 10 * MS) {
            let after = (pipe.sender.sequence().0, pipe.receiver.delivered_bytes());
            prop_assert!(after.0 >= before.0 && after.1 >= before.1, "progress is never lost");
            before = after;
            prop_assert!(pipe.now < 40_000 * SEC, "no end: {:?}", pipe.sender);
        }
        prop_assert_eq!(pipe.receiver.delivered_bytes(), total);
        prop_assert!(pipe.sender.completed_at().is_some());
        prop_assert_eq!(pipe.sender.outstanding(), 0);
        prop_assert!(!pipe.sender.in_recovery() || pipe.sender.sequence().0 == pipe.sender.sequence().1);
    }

    /// Stopped at any moment, a sender repairs what it has sent, sends nothing new, and falls
    /// silent.
    #[test]
    fn stops_when_told(tcp in connection(), fates in prop::collection::vec(fate(), 0..100), stop in 0u64..3000) {
        let tcp = Tcp { bytes: None, ..tcp };
        let script: Script = Box::new(|data, _, number, _| if data { fates.get(number as usize).copied().unwrap_or(Fate::Pass) } else { Fate::Pass });
        let mut pipe = Pipe::new(&tcp, 20 * MS, MS, script);
        pipe.start();
        pipe.run(stop * MS);
        pipe.sender.stop(pipe.now);
        let nxt = pipe.sender.sequence().1;
        prop_assert!(!pipe.run(40_000 * SEC), "still busy");
        prop_assert_eq!(pipe.sender.sequence(), (nxt, nxt));
        prop_assert_eq!(pipe.receiver.delivered_bytes(), bytes(&tcp, nxt));
        prop_assert_eq!(pipe.sender.completed_at(), None);
    }
}
