//! A performance-enhancing proxy (RFC 3135): TCP connections that would cross a long link are ended
//! at a gateway on either side of it, and carried over it by connections of XCP. Client and server
//! are untouched, and see each other's addresses.
//!
//! [`listen`] finds out where a connection wants to go, [`relay`] moves its bytes, [`worker`] does
//! both for many, with what [`settings`] say, and counts in `metrics`. Where clients are to be
//! answered only when the server has answered, [`confirm`] opens the legs to servers first.
//! [`trunk`] keeps connections to the other gateway open for clients to come; [`share`] says among
//! whom the long link is shared, `urgent` what goes first on it.
//! [`gateway`] is what of the machine has to be set up and taken back; [`run`] puts it all
//! together.
//!
//! ```
//! use xcp_pep::share::Share;
//!
//! // Two clients of one network share the long link as one subscriber.
//! let share = Share::read("prefix/24").expect("one of Share::CHOICES");
//! let [one, other] = ["198.51.100.7", "198.51.100.8"].map(|ip| ip.parse().unwrap());
//! assert_eq!(share.whose(one), share.whose(other));
//! assert_eq!(Share::Address.whose(one), Some(one));
//! ```

pub mod confirm;
pub mod gateway;
pub mod listen;
mod metrics;
pub mod options;
pub mod relay;
pub mod run;
mod seldom;
pub mod settings;
pub mod share;
pub mod shared;
pub mod socket;
pub mod trunk;
mod urgent;
pub mod worker;
