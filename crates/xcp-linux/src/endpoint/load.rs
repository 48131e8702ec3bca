//! Loads the endpoint's programs, or as many of them as the kernel takes.

use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, BorrowedFd};

use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{MapCore as _, MapFlags, MapMut};

use super::{Endpoint, EndpointConfig, Give, NoRoom, Programs, c_text};
use crate::error::{Error, Result};
use crate::link::Link;
use crate::object::{bytes_of, handle, hush};
use crate::programs::endpoint::{EndpointSkelBuilder, OpenEndpointSkel};
use crate::shared::{xcp_give, xcp_prefix, xcp_settings};
use crate::sysctl;

/// What an endpoint can do without, where the kernel does not take it.
#[derive(Debug, Clone, Copy)]
struct Extras {
    /// Room beside SACK.
    room: bool,
    /// Connections that begin with what is lent. Kernels with BBR's third version have no
    /// `min_tso_segs`; they then begin with their first acknowledgement.
    start: bool,
    /// To show the connections of all network namespaces.
    everywhere: bool,
}

impl Extras {
    /// These, then all but one of them, all but two, none.
    fn and_fewer(self) -> impl Iterator<Item = Self> {
        const ORDER: [u8; 8] = [0, 1, 2, 4, 3, 5, 6, 7];
        ORDER.into_iter().filter(move |without| self.start || without & 2 == 0).map(
            move |without| Self {
                room: self.room && without & 1 == 0,
                start: self.start && without & 2 == 0,
                everywhere: self.everywhere && without & 4 == 0,
            },
        )
    }
}

/// Why an attempt failed.
#[derive(Debug)]
enum Unloaded {
    /// The kernel does not take the programs; it may take fewer.
    Refused(Error),
    /// Fewer would not help.
    Other(Error),
}

impl From<Error> for Unloaded {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl Endpoint {
    /// Loads the programs and registers the congestion control; no socket uses it before
    /// [`Endpoint::attach`].
    ///
    /// # Errors
    /// A name that is taken or too long, too many ports or prefixes, a kernel that lacks what is
    /// needed or denies it.
    pub fn load(config: &EndpointConfig) -> Result<Self> {
        Self::load_changed(config, |_| {})
    }

    /// The same with a change to the programs before they are loaded, for tests. Where the kernel
    /// does not take all of them, those that are not essential stay away.
    pub(crate) fn load_changed(
        config: &EndpointConfig,
        change: impl Fn(&mut OpenEndpointSkel<'_>),
    ) -> Result<Self> {
        check_fallback(&config.fallback, &config.name)?;
        let all = Extras { room: true, start: config.ask.start, everywhere: true };
        let mut first = None;
        for extras in all.and_fewer() {
            match Self::load_with(config, extras, &change) {
                Ok(loaded) => return Ok(loaded),
                Err(Unloaded::Other(e)) => return Err(e),
                Err(Unloaded::Refused(e)) => first = first.or(Some(e)),
            }
        }
        Err(first.unwrap_or_else(|| Error::new("the endpoint's programs were not loaded")))
    }

    fn load_with(
        config: &EndpointConfig,
        extras: Extras,
        change: &impl Fn(&mut OpenEndpointSkel<'_>),
    ) -> std::result::Result<Self, Unloaded> {
        hush();
        let mut object = MaybeUninit::uninit();
        let mut open = EndpointSkelBuilder::default()
            .open(&mut object)
            .map_err(|e| Error::because("cannot open the endpoint's programs", e))?;
        let name = c_name(&config.name)?;
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.settings = xcp_settings {
                name,
                fallback: c_name(&config.fallback)?,
                ask: config.ask.into(),
                give: match config.give {
                    Give::Nobody => xcp_give::XCP_GIVE_NONE,
                    Give::All => xcp_give::XCP_GIVE_ALL,
                    Give::Listed { .. } => xcp_give::XCP_GIVE_LISTED,
                },
                receive_window: config.receive_window,
            };
        }
        open.maps
            .subscribers
            .set_max_entries(config.subscribers.max(1))
            .map_err(|e| Error::because("cannot make room for subscribers", e))?;
        open.struct_ops.xcp_mut().name = name;
        change(&mut open);
        if !extras.start {
            open.struct_ops.xcp_mut().min_tso_segs = std::ptr::null_mut();
            open.progs.xcp_min_tso_segs.set_autoload(false);
        }
        open.progs.xcp_room_ethernet.set_autoload(extras.room);
        open.progs.xcp_room_bare.set_autoload(extras.room);
        open.progs.xcp_show.set_autoload(extras.everywhere);
        open.progs.xcp_show_here.set_autoload(!extras.everywhere);
        let mut skel = open.load().map_err(|e| {
            Unloaded::Refused(Error::because("the kernel rejects the endpoint's programs", e))
        })?;
        if let Give::Listed { ports, prefixes } = &config.give {
            list(&skel.maps.ports, &skel.maps.prefixes, ports, prefixes)?;
        }
        let congestion = skel.maps.xcp.attach_struct_ops().map_err(|e| {
            let kind = e.kind();
            let error = Error::because(
                format_args!("cannot register the congestion control \"{}\"", config.name),
                e,
            );
            if kind == libbpf_rs::ErrorKind::AlreadyExists {
                error.remedy(
                    "another one with that name exists: `xcpnet endpoint disable` removes xcpnet's",
                )
            } else {
                error
            }
        })?;
        let connections = handle(&skel.maps.connections)?;
        let show = match extras.everywhere {
            true => skel.progs.xcp_show.attach_iter(connections.as_fd()),
            false => skel.progs.xcp_show_here.attach(),
        };
        let show = show.map_err(|e| Error::because("cannot attach the iterator", e))?;
        let listeners = skel
            .progs
            .xcp_listeners
            .attach()
            .map_err(|e| Error::because("cannot attach the iterator", e))?;
        let (congestion, show, listeners) =
            (Link::adopt(&congestion)?, Link::adopt(&show)?, Link::adopt(&listeners)?);
        let held = |fd: BorrowedFd<'_>| {
            fd.try_clone_to_owned().map_err(|e| Error::because("cannot hold a program", e))
        };
        Ok(Self {
            name: config.name.clone(),
            fallback: config.fallback.clone(),
            congestion,
            show,
            listeners: Some(listeners),
            start: Some([handle(&skel.maps.start_limits)?, handle(&skel.maps.start_taken)?]),
            whose: Some(handle(&skel.maps.whose)?),
            cgroups: Vec::new(),
            devices: Vec::new(),
            connections,
            robust: Some(handle(&skel.maps.robust)?),
            counts: handle(&skel.maps.counts)?,
            about: handle(&skel.maps.about)?,
            programs: Programs {
                endpoint: held(skel.progs.xcp_endpoint.as_fd())?,
                room: if extras.room {
                    Some([
                        held(skel.progs.xcp_room_ethernet.as_fd())?,
                        held(skel.progs.xcp_room_bare.as_fd())?,
                    ])
                } else {
                    None
                },
            },
            no_room: (!extras.room).then_some(NoRoom::Refused),
            everywhere: extras.everywhere,
        })
    }
}

/// Whether a congestion control can be the fallback of an endpoint of this name: one that the
/// kernel does not have would leave connections without any.
///
/// # Errors
/// It cannot.
pub fn check_fallback(fallback: &str, name: &str) -> Result<()> {
    let _valid: [i8; 16] = c_name(fallback)?;
    let Ok(available) = sysctl::read("net.ipv4.tcp_available_congestion_control") else {
        return Ok(());
    };
    let ours = |known: &str| known == name || is_xcpnets(known);
    if !ours(fallback) && available.split_whitespace().any(|known| known == fallback) {
        return Ok(());
    }
    let others = available.split_whitespace().filter(|known| !ours(known));
    let choose =
        format!("choose one that the kernel has now ({})", others.collect::<Vec<_>>().join(", "));
    Err(Error::new(format!("\"{fallback}\" cannot be the fallback")).remedy(if ours(fallback) {
        choose
    } else {
        format!("{choose}, or load it first: modprobe tcp_{fallback}")
    }))
}

/// Whether a congestion control is one of xcpnet's endpoints, labs and proxies: what XCP falls back
/// to is not XCP.
pub(crate) fn is_xcpnets(name: &str) -> bool {
    name.starts_with("xcp")
}

/// A congestion control's name as the kernel wants it.
fn c_name<const N: usize>(name: &str) -> Result<[i8; N]> {
    let valid = !name.is_empty() && name.len() < N && name.bytes().all(|b| b.is_ascii_graphic());
    if !valid {
        return Err(Error::new(format!("\"{name}\" cannot be the name of a congestion control"))
            .remedy("1 to 15 letters, digits and signs"));
    }
    Ok(c_text(name.as_bytes()))
}

/// Fills the lists of ports and prefixes.
fn list(
    ports: &MapMut<'_>,
    prefixes: &MapMut<'_>,
    wanted: &[u16],
    networks: &[(IpAddr, u8)],
) -> Result<()> {
    for port in wanted {
        ports
            .update(&port.to_ne_bytes(), &[1], MapFlags::ANY)
            .map_err(|e| Error::because(format_args!("cannot list port {port}"), e))?;
    }
    for (network, length) in networks {
        let (address, length) = match network {
            IpAddr::V4(v4) => (v4.to_ipv6_mapped(), u32::from(*length) + 96),
            IpAddr::V6(v6) => (*v6, u32::from(*length)),
        };
        let address = address.octets();
        let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|i| address[4 * at + i]));
        let key = xcp_prefix { length, address: std::array::from_fn(word) };
        prefixes
            .update(bytes_of(&key), &[1], MapFlags::ANY)
            .map_err(|e| Error::because(format_args!("cannot list {network}/{length}"), e))?;
    }
    Ok(())
}
