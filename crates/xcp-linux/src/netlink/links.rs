//! Network devices: what there is, pairs of virtual Ethernet devices, up, MTU, removal.

use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use super::message::{Request, attribute, attributes, number, short, text};
use super::{Error, Netlink, Result};
use crate::namespace::Namespace;

/// `VETH_INFO_PEER` (linux/veth.h).
const PEER: u16 = 1;
/// `RTEXT_FILTER_SKIP_STATS` (linux/rtnetlink.h): the counters of a device are not wanted.
const NO_COUNTERS: u32 = 1 << 3;
/// `IF_OPER_UP` (linux/if.h).
const OPERATIONAL: u8 = 6;
/// `IFLA_BR_NF_CALL_IPTABLES`, `IFLA_BR_NF_CALL_IP6TABLES` (linux/if_link.h).
const BRIDGE_NF_CALL: [u16; 2] = [36, 37];
/// How long a device may take to see its other end.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of a name, less the zero that ends it.
const LONGEST_NAME: usize = libc::IFNAMSIZ - 1;

/// A network device as the kernel describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its number, which is not given to another one as long as the namespace exists.
    pub index: u32,
    /// Name of the device, at most 15 characters.
    pub name: String,
    /// Bytes of the largest IP packet.
    pub mtu: u32,
    /// Whether it is switched on.
    pub up: bool,
    /// Whether the other end of the wire is there, too.
    pub running: bool,
    /// Whether the kernel has seen that it is, and lets packets out (RFC 2863, `IF_OPER_UP`). Not
    /// of devices that do not tell.
    pub operational: bool,
    /// `veth`, `vlan`, `bridge`, ...; `None` for hardware.
    pub kind: Option<String>,
    /// Whether it is the loopback device.
    pub loopback: bool,
    /// Its Ethernet address, if it has one.
    pub mac: Option<[u8; 6]>,
    /// Packets that a queueing discipline without a limit of its own holds.
    pub tx_queue_len: u32,
    /// Queues it sends from.
    pub tx_queues: u32,
    /// The queueing discipline in front of it.
    pub qdisc: String,
    /// The device that it is a part of: a bridge's, a bond's.
    pub master: Option<u32>,
    /// Of a bridge: whether it has the packet filter see what it carries, IPv4 and IPv6, whatever
    /// `net.bridge.bridge-nf-call-iptables` says.
    pub filtered: [bool; 2],
}

impl Device {
    /// Says that none of these devices of a namespace has a name, and which ones there are.
    pub fn absent<'a>(name: &str, there: impl IntoIterator<Item = &'a Self>) -> crate::Error {
        let names: Vec<&str> = there.into_iter().map(|device| device.name.as_str()).collect();
        let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        crate::Error::new(format!("there is no device \"{name}\""))
            .remedy(format!("this network namespace has {has}"))
    }

    /// Bytes of its link-layer header: Ethernet's, or none.
    #[must_use]
    pub fn link_bytes(&self) -> u32 {
        if self.mac.is_some() { 14 } else { 0 }
    }

    /// Bytes of the longest frame that it sends.
    #[must_use]
    pub fn full_frame(&self) -> u32 {
        self.mtu.saturating_add(self.link_bytes())
    }
}

/// What a device has sent since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Packets; one that the device will cut up counts once.
    pub packets: u64,
    /// Bytes of Ethernet frames.
    pub bytes: u64,
    /// Packets it did not send.
    pub drops: u64,
}

/// How a pair of virtual Ethernet devices is to be; the same for both but for the addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VethOptions {
    /// Bytes of the largest IP packet.
    pub mtu: u32,
    /// Packets that a queueing discipline without a limit of its own holds.
    pub tx_queue_len: u32,
    /// Queues in each direction. With one, the packets of a direction stay in order.
    pub queues: u32,
    /// Ethernet address of this end; random if absent.
    pub mac: Option<[u8; 6]>,
    /// Ethernet address of the other end; random if absent.
    pub peer_mac: Option<[u8; 6]>,
}

impl Default for VethOptions {
    fn default() -> Self {
        Self { mtu: 1500, tx_queue_len: 1000, queues: 1, mac: None, peer_mac: None }
    }
}

impl Netlink {
    /// The devices of the namespace.
    pub fn links(&mut self) -> Result<Vec<Device>> {
        let request = || {
            let mut request =
                Request::new(libc::RTM_GETLINK, libc::NLM_F_DUMP as u16, &header(0, 0, 0));
            request.number(libc::IFLA_EXT_MASK, NO_COUNTERS);
            request
        };
        self.dump(|| "list the network devices".to_owned(), request, device)
    }

    /// The device of this number.
    pub fn link(&mut self, index: u32) -> Result<Device> {
        let mut request = Request::new(libc::RTM_GETLINK, 0, &header(index, 0, 0));
        request.number(libc::IFLA_EXT_MASK, NO_COUNTERS);
        let doing = || format!("find the network device number {index}");
        let found = self.get(doing, request, device)?;
        found.ok_or_else(|| Error::refused(doing(), "the kernel does not answer"))
    }

    /// The number of the device of this name, if there is one.
    pub fn index_of(&mut self, name: &str) -> Result<Option<u32>> {
        let doing = || format!("find the network device \"{name}\"");
        check_name(name, doing)?;
        let mut request = Request::new(libc::RTM_GETLINK, 0, &header(0, 0, 0));
        request.text(libc::IFLA_IFNAME, name).number(libc::IFLA_EXT_MASK, NO_COUNTERS);
        match self.get(doing, request, device) {
            Ok(found) => Ok(found.map(|device| device.index)),
            Err(e) if e.errno() == Some(libc::ENODEV) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Makes a pair of virtual Ethernet devices: one end here, the other in the namespace given.
    /// Both are down.
    pub fn add_veth(
        &mut self,
        name: &str,
        peer_name: &str,
        peer_namespace: &Namespace,
    ) -> Result<()> {
        self.add_veth_with(name, peer_name, peer_namespace, &VethOptions::default())
    }

    /// The same with a say in how they are.
    pub fn add_veth_with(
        &mut self,
        name: &str,
        peer_name: &str,
        peer_namespace: &Namespace,
        options: &VethOptions,
    ) -> Result<()> {
        let doing = || format!("add the pair of devices \"{name}\" and \"{peer_name}\"");
        check_name(name, doing)?;
        check_name(peer_name, doing)?;
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let mut request = Request::new(libc::RTM_NEWLINK, flags as u16, &header(0, 0, 0));
        describe(&mut request, name, options.mac, options);
        request.nested(libc::IFLA_LINKINFO, |info| {
            info.text(libc::IFLA_INFO_KIND, "veth");
            info.nested(libc::IFLA_INFO_DATA, |data| {
                data.nested(PEER, |peer| {
                    peer.plain(&header(0, 0, 0));
                    describe(peer, peer_name, options.peer_mac, options);
                    peer.number(libc::IFLA_NET_NS_FD, peer_namespace.as_fd().as_raw_fd() as u32);
                });
            });
        });
        self.change(doing, request).map_err(|e| match e.errno() {
            Some(libc::EOPNOTSUPP) => {
                e.or("this kernel has no veth devices (CONFIG_VETH; modprobe veth)")
            }
            _ => e,
        })
    }

    /// Switches a device on.
    pub fn set_up(&mut self, index: u32) -> Result<()> {
        let up = libc::IFF_UP as u32;
        let request =
            Request::new(libc::RTM_NEWLINK, libc::NLM_F_ACK as u16, &header(index, up, up));
        self.change(|| format!("switch on the network device number {index}"), request)
    }

    /// Waits until a virtual Ethernet device that was switched on sends. Until a work queue of the
    /// kernel's has seen that the other end is there, and has started the queueing discipline
    /// (linkwatch), everything is dropped; on a busy machine that takes seconds.
    ///
    /// # Errors
    /// No such device, or it does not come up.
    pub fn wait_until_it_sends(&mut self, index: u32) -> Result<()> {
        let begin = Instant::now();
        while !self.link(index)?.operational {
            if begin.elapsed() > PATIENCE {
                let doing = format!("use the network device number {index}");
                return Err(Error::refused(
                    doing,
                    "it has been switched on but does not find its other end",
                ));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Switches a device off.
    pub fn set_down(&mut self, index: u32) -> Result<()> {
        let request = Request::new(
            libc::RTM_NEWLINK,
            libc::NLM_F_ACK as u16,
            &header(index, 0, libc::IFF_UP as u32),
        );
        self.change(|| format!("switch off the network device number {index}"), request)
    }

    /// Sets the bytes of the largest IP packet.
    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> Result<()> {
        let mut request =
            Request::new(libc::RTM_NEWLINK, libc::NLM_F_ACK as u16, &header(index, 0, 0));
        request.number(libc::IFLA_MTU, mtu);
        self.change(
            || format!("set the MTU of the network device number {index} to {mtu}"),
            request,
        )
    }

    /// Sets how many segments a packet handed down by TCP may hold; with 1 each is one from the
    /// beginning, and what a queue counts are segments.
    pub fn set_gso_max_segments(&mut self, index: u32, segments: u32) -> Result<()> {
        let mut request =
            Request::new(libc::RTM_NEWLINK, libc::NLM_F_ACK as u16, &header(index, 0, 0));
        request.number(libc::IFLA_GSO_MAX_SEGS, segments);
        self.change(
            || format!("limit packets of the network device number {index} to {segments} segments"),
            request,
        )
    }

    /// What a device has sent.
    pub fn sent(&mut self, index: u32) -> Result<Sent> {
        let doing = || format!("read the counters of the network device number {index}");
        let request = Request::new(libc::RTM_GETLINK, 0, &header(index, 0, 0));
        // struct rtnl_link_stats64: packets received and sent, bytes received and sent, errors,
        // drops received and sent
        let read = |payload: &[u8]| {
            let counters = attribute(payload.get(16..)?, libc::IFLA_STATS64)?;
            let field = |at: usize| {
                Some(u64::from_ne_bytes(counters.get(8 * at..8 * at + 8)?.try_into().ok()?))
            };
            Some(Sent { packets: field(1)?, bytes: field(3)?, drops: field(7)? })
        };
        self.get(doing, request, read)?
            .ok_or_else(|| Error::refused(doing(), "the kernel does not tell"))
    }

    /// Removes a device; of a pair, both ends.
    pub fn delete_link(&mut self, index: u32) -> Result<()> {
        let request = Request::new(libc::RTM_DELLINK, libc::NLM_F_ACK as u16, &header(index, 0, 0));
        self.change(|| format!("remove the network device number {index}"), request)
    }
}

/// `struct ifinfomsg`.
fn header(index: u32, flags: u32, change: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[8..12].copy_from_slice(&flags.to_ne_bytes());
    bytes[12..16].copy_from_slice(&change.to_ne_bytes());
    bytes
}

/// What both ends of a pair are told alike.
fn describe(request: &mut Request, name: &str, mac: Option<[u8; 6]>, options: &VethOptions) {
    request.text(libc::IFLA_IFNAME, name);
    request.number(libc::IFLA_MTU, options.mtu);
    request.number(libc::IFLA_TXQLEN, options.tx_queue_len);
    request.number(libc::IFLA_NUM_TX_QUEUES, options.queues);
    request.number(libc::IFLA_NUM_RX_QUEUES, options.queues);
    if let Some(mac) = mac {
        request.attribute(libc::IFLA_ADDRESS, &mac);
    }
}

/// The kernel's rules for names (dev_valid_name), with the reason where it would only say "invalid
/// argument".
fn check_name(name: &str, doing: impl Fn() -> String) -> Result<()> {
    let why = if name.is_empty() {
        "a device's name cannot be empty"
    } else if name.len() > LONGEST_NAME {
        "a device's name cannot have more than 15 characters"
    } else if name == "."
        || name == ".."
        || name.bytes().any(|b| b == b'/' || b == b':' || b == 0 || b.is_ascii_whitespace())
    {
        "a device's name cannot contain a slash, a colon or white space"
    } else {
        return Ok(());
    };
    Err(Error::refused(doing(), why))
}

fn device(payload: &[u8]) -> Option<Device> {
    let link_type = short(payload, 2)?;
    let index = number(payload, 4)?;
    let flags = number(payload, 8)? as i32;
    let mut device = Device {
        index,
        name: String::new(),
        mtu: 0,
        up: flags & libc::IFF_UP != 0,
        running: flags & libc::IFF_RUNNING != 0,
        operational: false,
        kind: None,
        loopback: flags & libc::IFF_LOOPBACK != 0,
        mac: None,
        tx_queue_len: 0,
        tx_queues: 1,
        qdisc: String::new(),
        master: None,
        filtered: [false; 2],
    };
    for (kind, value) in attributes(payload.get(16..)?) {
        match kind {
            libc::IFLA_IFNAME => device.name = text(value),
            libc::IFLA_MTU => device.mtu = number(value, 0)?,
            libc::IFLA_TXQLEN => device.tx_queue_len = number(value, 0)?,
            libc::IFLA_NUM_TX_QUEUES => device.tx_queues = number(value, 0)?,
            libc::IFLA_OPERSTATE => device.operational = value.first() == Some(&OPERATIONAL),
            libc::IFLA_QDISC => device.qdisc = text(value),
            libc::IFLA_ADDRESS if link_type == libc::ARPHRD_ETHER => {
                device.mac = value.try_into().ok()
            }
            libc::IFLA_MASTER => device.master = number(value, 0),
            libc::IFLA_LINKINFO => {
                let data = attribute(value, libc::IFLA_INFO_DATA).unwrap_or_default();
                let on = |kind| attribute(data, kind).is_some_and(|value| value == [1]);
                device.kind = attributes(value)
                    .find(|(kind, _)| *kind == libc::IFLA_INFO_KIND)
                    .map(|(_, name)| text(name));
                // Numbers of other kinds of devices mean something else.
                if device.kind.as_deref() == Some("bridge") {
                    device.filtered = BRIDGE_NF_CALL.map(on);
                }
            }
            _ => {}
        }
    }
    Some(device)
}

#[cfg(test)]
mod tests {
    use super::super::qdiscs::described;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What the kernel says of a device or a queue, with lengths that are none: it is read or
        /// not, never a panic.
        #[test]
        fn no_answer_is_too_strange(
            fixed in prop::collection::vec(any::<u8>(), 0..24),
            attributes in prop::collection::vec((0u16..70, prop::collection::vec(any::<u8>(), 0..40)), 0..12),
            cut in any::<usize>(),
        ) {
            let mut answer = Request::new(libc::RTM_NEWLINK, 0, &fixed);
            for (kind, value) in &attributes {
                answer.attribute(*kind, value);
            }
            let bytes = answer.finish(1);
            let payload = &bytes[16..];
            let payload = &payload[..payload.len() - cut % (payload.len() + 1)];
            if let Some(device) = device(payload) {
                prop_assert!(!device.name.contains('\0') && !device.qdisc.contains('\0'));
            }
            if let Some((_, queue)) = described(payload) {
                let _ = (queue.kind(), queue.options(), queue.statistics());
            }
        }
    }
}
