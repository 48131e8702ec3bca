//! The one place where the lab meets our kernel programs: the endpoint that makes sockets speak
//! XCP, the router at a queue.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::sockopt;
use xcp_engine::{PolicerConfig, RouterState};
use xcp_linux::endpoint::{self, Agreement, Ask, EndpointConfig, FALLBACK, Give};
use xcp_linux::police::{Police, PoliceBy};
use xcp_linux::router::{self, Hook};
use xcp_model::units::Nanos;
use xcp_model::{self as model, Congestion, LossResponse, Tcp, Unclaimed, WireFormat, XcpSender};

use crate::LabError;
use crate::home::Home;
use crate::plan::{DeviceId, Plan};
use crate::site::Site;

/// The id of every host's own access link: no router of ours has it (they draw theirs), and a host
/// never hears another's.
const ACCESS_ID: u32 = 0xacce_5511;
/// Ethernet's header.
const LINK_BYTES: u32 = 14;

/// The endpoint's program, loaded for this lab. Dropped, it is gone.
#[derive(Debug)]
pub(crate) struct Endpoint {
    endpoint: endpoint::Endpoint,
}

/// A connection as the endpoint's program sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    /// Whether its window is XCP's.
    pub sending: bool,
    pub cwnd_packets: f64,
    pub srtt: Nanos,
    pub rtt_sum: u128,
    pub rtt_samples: u64,
    agreement: Agreement,
}

impl Reading {
    /// Why it is no XCP any more, if that is so.
    pub fn fallen(&self) -> Option<String> {
        let why = match self.agreement {
            Agreement::Untouched | Agreement::Offered | Agreement::Agreed => return None,
            Agreement::FallenPeer => "the other end does not speak XCP",
            Agreement::FallenSilent => "feedback stopped",
            Agreement::FallenLate => "XCP was chosen too late",
        };
        Some(format!("it continued as {FALLBACK}: {why}"))
    }
}

impl Endpoint {
    /// Loads it for sockets made in this lab's control group; `devices` are those by which its
    /// hosts send, `window` what receivers offer at once, segments.
    pub fn load(
        home: &Home,
        site: &Site,
        plan: &Plan,
        devices: &[DeviceId],
        window: u32,
    ) -> Result<Self, LabError> {
        let name = format!("{}{}", Congestion::OF_LABS, std::process::id());
        let config = EndpointConfig {
            name,
            fallback: FALLBACK.into(),
            give: Give::Nobody,
            ask: Ask::default(),
            receive_window: window,
            ..EndpointConfig::default()
        };
        let missing = |why: xcp_linux::Error| LabError::lacks(why);
        let mut endpoint = endpoint::Endpoint::load(&config).map_err(missing)?;
        endpoint.attach(home.as_fd()).map_err(missing)?;
        for &device in devices {
            let (space, index) = site.device(plan, device);
            let room = site.spaces[space].run(|| endpoint.make_room(index, true));
            room.map_err(|why| LabError::failed("enter a namespace", why))?.map_err(missing)?;
        }
        Ok(Self { endpoint })
    }

    /// Makes a socket that has not spoken yet speak XCP with these settings; what it accepts does,
    /// too.
    pub fn ask(&self, socket: BorrowedFd<'_>, tcp: &Tcp) -> io::Result<()> {
        let ask = Ask {
            classic: tcp.wire == WireFormat::Classic,
            paced: tcp.paced,
            honest: tcp.honest_window,
            halve_on_loss: tcp.loss_response == LossResponse::Halve,
            initial_window: tcp.initial_window,
            ids: tcp.ids.map(|unclaimed| match unclaimed {
                Unclaimed::Unknown => 0,
                Unclaimed::Access => ACCESS_ID,
            }),
            robust: tcp.xcp_sender == XcpSender::Robust,
            ..Ask::default()
        };
        self.endpoint.ask(socket, &ask).map_err(|why| io::Error::other(why.to_string()))?;
        Ok(sockopt::set_tcp_congestion(socket, self.endpoint.name())?)
    }

    /// How a connection stands; `None` before it is one.
    pub fn flow(&self, socket: BorrowedFd<'_>) -> Option<Reading> {
        let connection = self.endpoint.connection(socket).ok()??;
        Some(Reading {
            sending: connection.sending,
            cwnd_packets: connection.cwnd_packets,
            srtt: connection.srtt_ns,
            rtt_sum: u128::from(connection.rtt_sum_us) * 1000,
            rtt_samples: connection.rtt_samples,
            agreement: connection.agreement,
        })
    }
}

/// The router's program at a device. Dropped, it is gone.
#[derive(Debug)]
pub(crate) struct Router {
    router: router::Router,
    /// Whether it may drop packets itself: its policer, or its law.
    refuses: bool,
}

impl Router {
    /// Attaches it to the queue at a device.
    pub fn attach(
        site: &Site,
        plan: &Plan,
        device: DeviceId,
        law: xcp_engine::RouterConfig,
        police: Option<&model::Police>,
        seed: u64,
    ) -> Result<Self, LabError> {
        let (space, index) = site.device(plan, device);
        // The law's part of a link that is split is in the law already.
        let classes = plan
            .shapers
            .iter()
            .any(|shaper| shaper.device == device && shaper.others.is_some())
            .then_some(1000);
        let police = police.map(|police| Police {
            config: PolicerConfig { flows: police.flows, longest_rtt_ns: police.longest_rtt, seed },
            by: PoliceBy::Flow,
        });
        let refuses = police.is_some() || law.tcp == xcp_engine::Tcp::Steered;
        let config = router::RouterConfig {
            law,
            seed,
            link_bytes: LINK_BYTES,
            hook: Hook::Any,
            police,
            classes,
            urgent: false,
        };
        let router = site.spaces[space].run(|| router::Router::attach(index, &config));
        let router = router
            .map_err(|why| LabError::failed("enter a namespace", why))?
            .map_err(LabError::lacks)?;
        Ok(Self { router, refuses })
    }

    /// The router's own variables; `None` if they cannot be read.
    pub fn state(&self) -> Option<RouterState> {
        Some(self.router.status().ok()?.state)
    }

    /// Tells it that its link has another capacity from now on, bytes/s.
    pub fn set_capacity(&self, bytes_per_sec: u64) -> xcp_linux::Result<()> {
        self.router.set_capacity(bytes_per_sec)
    }

    /// Packets that its policer has refused, and those of TCP that its law had dropped; `None` if
    /// that cannot be read.
    pub fn refused(&self) -> Option<u64> {
        if !self.refuses {
            return Some(0);
        }
        let status = self.router.status().ok()?;
        let policed = status.policing.map_or(0, |police| police.state.refused);
        Some(policed + status.counts.steered)
    }
}
