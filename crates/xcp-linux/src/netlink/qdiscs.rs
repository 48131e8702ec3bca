//! Queueing disciplines and their classes as messages: made, changed, removed, looked at. What
//! their options mean is [`crate::qdisc`]'s business.

use super::message::{Request, attribute, number, text};
use super::{Netlink, Result};

/// `TC_H_ROOT` (linux/pkt_sched.h): the parent of a device's own queueing discipline.
pub const ROOT: u32 = 0xffff_ffff;

/// A queueing discipline or a class, as the kernel describes it.
#[derive(Debug)]
pub struct Described<'a> {
    /// Its own handle.
    pub handle: u32,
    /// Handle of its parent.
    pub parent: u32,
    attributes: &'a [u8],
}

impl Described<'_> {
    /// `htb`, `pfifo`, ...
    pub fn kind(&self) -> Option<String> {
        attribute(self.attributes, libc::TCA_KIND).map(text)
    }

    /// Its options, in its own format.
    pub fn options(&self) -> Option<&[u8]> {
        attribute(self.attributes, libc::TCA_OPTIONS)
    }

    /// Its counters: attributes (`TCA_STATS_...`).
    pub fn statistics(&self) -> Option<&[u8]> {
        attribute(self.attributes, libc::TCA_STATS2)
    }
}

pub(super) fn described(payload: &[u8]) -> Option<(u32, Described<'_>)> {
    let described = Described {
        handle: number(payload, 8)?,
        parent: number(payload, 12)?,
        attributes: payload.get(20..)?,
    };
    Some((number(payload, 4)?, described))
}

/// `struct tcmsg`.
fn fixed(index: u32, handle: u32, parent: u32) -> [u8; 20] {
    let mut bytes = [0; 20];
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[8..12].copy_from_slice(&handle.to_ne_bytes());
    bytes[12..16].copy_from_slice(&parent.to_ne_bytes());
    bytes
}

/// What is to be made or changed.
pub struct Wanted<'a> {
    /// Index of the network device.
    pub index: u32,
    /// Its own number; 0 leaves it to the kernel.
    pub handle: u32,
    /// Where it is to hang.
    pub parent: u32,
    /// `htb`, `pfifo`, ...
    pub kind: &'a str,
}

impl Netlink {
    /// Makes a queueing discipline, or changes the one that is there to it.
    pub(crate) fn set_qdisc(
        &mut self,
        wanted: &Wanted<'_>,
        options: impl FnOnce(&mut Request),
    ) -> Result<()> {
        let kind = wanted.kind;
        self.set(libc::RTM_NEWQDISC, wanted, options).map_err(|e| match e.errno() {
            // The kernel's answer to a kind that it does not know.
            Some(libc::ENOENT) => e.or(format!(
                "this kernel has no {kind} (CONFIG_NET_SCH_{}; modprobe sch_{kind})",
                option_of(kind)
            )),
            _ => e,
        })
    }

    /// Makes or changes a class.
    pub(crate) fn set_class(
        &mut self,
        wanted: &Wanted<'_>,
        options: impl FnOnce(&mut Request),
    ) -> Result<()> {
        self.set(libc::RTM_NEWTCLASS, wanted, options)
    }

    fn set(
        &mut self,
        message: u16,
        wanted: &Wanted<'_>,
        options: impl FnOnce(&mut Request),
    ) -> Result<()> {
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        let mut request =
            Request::new(message, flags as u16, &fixed(wanted.index, wanted.handle, wanted.parent));
        request.text(libc::TCA_KIND, wanted.kind).nested(libc::TCA_OPTIONS, options);
        let what = if message == libc::RTM_NEWTCLASS { "class" } else { "queueing discipline" };
        self.change(
            || {
                format!(
                    "set the {} {what} of the network device number {}",
                    wanted.kind, wanted.index
                )
            },
            request,
        )
    }

    /// Removes a queueing discipline with all below it; at the root the kernel's default comes
    /// back.
    pub(crate) fn delete_qdisc(&mut self, index: u32, handle: u32, parent: u32) -> Result<()> {
        let request =
            Request::new(libc::RTM_DELQDISC, libc::NLM_F_ACK as u16, &fixed(index, handle, parent));
        self.change(
            || format!("remove the queueing discipline of the network device number {index}"),
            request,
        )
    }

    /// Looks at the queueing discipline below a parent. `None` if it is one that the kernel shows
    /// to nobody (noop, of a device that is down).
    pub(crate) fn get_qdisc<T>(
        &mut self,
        index: u32,
        parent: u32,
        mut read: impl FnMut(&Described<'_>) -> Option<T>,
    ) -> Result<Option<T>> {
        // Without the echo, only those hear the answer who listen to all changes (qdisc_get_notify,
        // rtnetlink_send).
        let request =
            Request::new(libc::RTM_GETQDISC, libc::NLM_F_ECHO as u16, &fixed(index, 0, parent));
        let doing =
            || format!("look at the queueing discipline of the network device number {index}");
        self.get(doing, request, |payload| read(&described(payload)?.1))
    }

    /// Looks at all classes of a device.
    pub(crate) fn classes<T>(
        &mut self,
        index: u32,
        mut read: impl FnMut(&Described<'_>) -> Option<T>,
    ) -> Result<Vec<T>> {
        let request =
            || Request::new(libc::RTM_GETTCLASS, libc::NLM_F_DUMP as u16, &fixed(index, 0, 0));
        let doing = || format!("list the classes of the network device number {index}");
        self.dump(doing, request, |payload| {
            let (device, described) = described(payload)?;
            if device == index { read(&described) } else { None }
        })
    }
}

/// Where clsact itself hangs (TC_H_CLSACT).
const CLSACT: u32 = 0xffff_fff1;
/// Where filters hang on clsact (linux/pkt_sched.h): TC_H_CLSACT with TC_H_MIN_INGRESS and
/// TC_H_MIN_EGRESS.
const CLSACT_WAYS: [u32; 2] = [0xffff_fff2, 0xffff_fff3];

impl Netlink {
    /// Whether a device has a clsact hook, or an ingress one in its place.
    pub(crate) fn has_clsact(&mut self, index: u32) -> Result<bool> {
        match self.get_qdisc(index, CLSACT, |_| Some(())) {
            Ok(there) => Ok(there.is_some()),
            Err(e) if e.errno() == Some(libc::ENOENT) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Whether a device's clsact hook has any filter, in or out.
    pub(crate) fn has_filters(&mut self, index: u32) -> Result<bool> {
        for way in CLSACT_WAYS {
            let request = || {
                Request::new(libc::RTM_GETTFILTER, libc::NLM_F_DUMP as u16, &fixed(index, 0, way))
            };
            let doing = || format!("list the filters of the network device number {index}");
            if !self.dump(doing, request, |_| Some(()))?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The end of the kernel's build option that brings a kind.
fn option_of(kind: &str) -> String {
    match kind {
        "pfifo" | "bfifo" => "FIFO".to_owned(),
        "clsact" => "INGRESS".to_owned(),
        _ => kind.to_ascii_uppercase(),
    }
}
