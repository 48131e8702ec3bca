//! XCP in the unmodified Linux kernel: the kernel programs of `bpf/` loaded, attached and read, and
//! what of the network around them has to be set up. Scenarios are `xcp-lab`'s business.
//!
//! [`endpoint`] is XCP in the kernel's own TCP, [`router`] XCP at a device on its way out, with
//! [`police`] before it and what is [`urgent`]; [`kept`] leaves both in place when their process
//! ends. [`netlink`], [`qdisc`], [`offload`], [`namespace`], [`cgroup`], [`process`] and [`sysctl`]
//! are what else of a machine has to be looked at or set; [`doctor`] says what a machine lacks.
//! [`rehearsal`] runs the programs on packets at hand.
//!
//! All sockets that processes of a control group open from now on speak XCP where the peer does:
//!
//! ```no_run
//! use std::os::fd::AsFd as _;
//! use std::path::Path;
//!
//! use xcp_linux::cgroup;
//! use xcp_linux::endpoint::{Endpoint, EndpointConfig};
//!
//! let mut endpoint = Endpoint::load(&EndpointConfig::default())?;
//! let group = cgroup::open(Path::new("/sys/fs/cgroup/browser"))?;
//! endpoint.attach(group.as_fd())?;
//! println!("{} connections agreed on it", endpoint.counts()?.agreed);
//! # Ok::<(), xcp_linux::Error>(())
//! ```
//!
//! Nothing that is set up needs a privilege to be described:
//!
//! ```
//! use xcp_linux::urgent::Urgent;
//!
//! // Expedited forwarding (DSCP 46) goes first, up to a tenth of the link.
//! let calls = Urgent { codes: 1 << 46, share: 100 };
//! assert!(calls.has(46) && !calls.has(0));
//! ```

pub mod cgroup;
pub mod doctor;
pub mod endpoint;
pub mod error;
pub mod kept;
mod link;
pub mod namespace;
pub mod netlink;
mod object;
pub mod offload;
pub mod police;
mod port;
pub mod process;
mod programs;
pub mod qdisc;
pub mod rehearsal;
pub mod router;
mod shared;
pub mod subscribers;
pub mod sysctl;
pub mod urgent;

pub use error::{Error, Result};

/// What the kernel takes as `TCP_MAXSEG`: TCP_MIN_MSS to MAX_TCP_WINDOW.
pub const MSS: std::ops::RangeInclusive<u32> = 88..=32_767;
