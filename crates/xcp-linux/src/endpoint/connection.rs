//! What is seen of a connection from outside, read from what the programs keep of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use xcp_engine::{Bound, ROBUST_SENDER_WORDS, RobustSender};

use crate::object::cast;
use crate::shared::{
    xcp_ask_flags, xcp_connection, xcp_connection_state, xcp_fall, xcp_record, xcp_robust_sender,
};

/// How far a connection's ends have agreed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// Nothing was said.
    Untouched,
    /// The SYN offered XCP.
    Offered,
    /// Both speak it.
    Agreed,
    /// It goes on as the fallback: the peer does not speak it.
    FallenPeer,
    /// It goes on as the fallback: feedback stopped coming.
    FallenSilent,
    /// It goes on as the fallback: XCP was chosen too late.
    FallenLate,
}

/// State of XCP on one connection.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Connection {
    /// What the ends agreed on.
    pub agreement: Agreement,
    /// Whether our window is XCP's.
    pub sending: bool,
    /// Whether the peer's data came with forward headers.
    pub receiving: bool,
    /// Whether a router on the path has been heard of.
    pub marked: bool,
    /// Whether it uses the 2005 header format.
    pub classic: bool,
    /// The id of the link that limits it, where ids are used and one is known.
    pub bottleneck_id: Option<u32>,
    /// Congestion window, packets.
    pub cwnd_packets: f64,
    /// Smoothed RTT, ns; 0 before the first sample.
    pub srtt_ns: u64,
    /// Sum of the RTT's samples, µs.
    pub rtt_sum_us: u64,
    /// Number of RTT samples in that sum.
    pub rtt_samples: u64,
    /// Bytes of a full packet on the wire.
    pub packet_bytes: u32,
    /// Forward headers sent (one for a super-packet).
    pub forwards: u64,
    /// Return headers that came.
    pub returns: u64,
    /// Segments that came with forward headers.
    pub received: u64,
    /// Recoveries entered (three duplicate ACKs).
    pub losses: u64,
    /// Number of retransmission timeouts.
    pub timeouts: u64,
    /// Packets in which SACK blocks made room for the option.
    pub trimmed: u64,
    /// The newest feedback: bit/s, in the classic format packets.
    pub last_feedback: f64,
    /// All feedback summed, in the same unit.
    pub feedback_sum: f64,
    /// What the robust sender does, where the connection has it.
    pub robust: Option<Robust>,
}

/// A robust sender (engine/robust_sender.h).
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Robust {
    /// What bounds it besides the routers: nothing, delay, or CUBIC's window beside others.
    pub bound: &'static str,
    /// Packets that the bound lets be in flight.
    pub bound_packets: Option<f64>,
    /// The least RTT it has seen, ns.
    pub base_rtt_ns: u64,
    /// How often delay or loss has bound it.
    pub binds: u32,
    /// How often it has begun to compete.
    pub competes: u32,
}

/// A connection with its ends, as `show` lists it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Shown {
    /// Inode of its network namespace.
    pub namespace: u32,
    /// Address and port at this host.
    pub local: SocketAddr,
    /// Address and port of the peer.
    pub remote: SocketAddr,
    /// State of XCP on it.
    #[serde(flatten)]
    pub connection: Connection,
}

impl Connection {
    pub(super) fn new(raw: &xcp_connection, robust: Option<&xcp_robust_sender>) -> Self {
        // All zero where there is none.
        let robust = robust.filter(|robust| {
            cast::<_, [u64; ROBUST_SENDER_WORDS]>(*robust).iter().any(|word| *word != 0)
        });
        let sender = robust.map_or(raw.sender, |robust| robust.xcp);
        let sender = xcp_engine::Sender::from_words(cast(&sender));
        let classic = raw.ask.has(xcp_ask_flags::XCP_ASK_CLASSIC);
        // Q20 bytes/s, or Q12 packets.
        let unit = if classic { 1.0 / 4096.0 } else { 8.0 / (1u64 << 20) as f64 };
        let format = if classic {
            xcp_engine::WireFormat::Classic
        } else {
            xcp_engine::WireFormat::Extended
        };
        Self {
            agreement: match (raw.state, raw.fall) {
                (xcp_connection_state::XCP_UNTOUCHED, _) => Agreement::Untouched,
                (xcp_connection_state::XCP_OFFERED, _) => Agreement::Offered,
                (xcp_connection_state::XCP_AGREED, _) => Agreement::Agreed,
                (_, xcp_fall::XCP_FALL_PEER) => Agreement::FallenPeer,
                (_, xcp_fall::XCP_FALL_SILENT) => Agreement::FallenSilent,
                _ => Agreement::FallenLate,
            },
            sending: raw.sending != 0,
            receiving: raw.receiving != 0,
            marked: sender.marked(),
            classic,
            bottleneck_id: sender.bottleneck_id(),
            cwnd_packets: sender.window(),
            srtt_ns: raw.srtt_ns,
            rtt_sum_us: raw.rtt_sum_us,
            rtt_samples: raw.rtt_samples,
            packet_bytes: raw.packet_bytes,
            forwards: raw.forwards,
            returns: raw.returns,
            received: raw.received,
            losses: raw.losses,
            timeouts: raw.timeouts,
            trimmed: raw.trimmed,
            last_feedback: format.decode_feedback(raw.last_feedback as u16)
                * if classic { 1.0 } else { 8.0 },
            feedback_sum: raw.feedback_sum as f64 * unit,
            robust: robust.map(Robust::from),
        }
    }
}

impl From<&xcp_robust_sender> for Robust {
    fn from(raw: &xcp_robust_sender) -> Self {
        let state = RobustSender::from_words(&cast(raw)).state();
        Self {
            bound: match state.bound {
                Bound::Free => "nothing",
                Bound::Delay => "delay",
                Bound::Compete => "competition",
            },
            bound_packets: Some(state.bound_packets).filter(|packets| packets.is_finite()),
            base_rtt_ns: state.base_ns,
            binds: state.binds,
            competes: state.competes,
        }
    }
}

impl From<&xcp_record> for Shown {
    fn from(xcp_record { shown: raw, robust }: &xcp_record) -> Self {
        let end = |words: [u32; 4], port| SocketAddr::new(address(raw.family, words), port);
        Self {
            namespace: raw.namespace,
            local: end(raw.local, raw.local_port),
            remote: end(raw.remote, raw.remote_port),
            connection: Connection::new(&raw.connection, Some(robust)),
        }
    }
}

/// An address from words as the kernel keeps them, in network order.
fn address(family: u16, words: [u32; 4]) -> IpAddr {
    if i32::from(family) == libc::AF_INET {
        return Ipv4Addr::from(words[3].to_ne_bytes()).into();
    }
    let mut octets = [0; 16];
    for (chunk, word) in octets.chunks_exact_mut(4).zip(words) {
        chunk.copy_from_slice(&word.to_ne_bytes());
    }
    Ipv6Addr::from(octets).to_canonical()
}
