//! The words that everything else of xcpnet is written in: [`units`], [`quantity`]s as people write
//! them ([`typed`] on a command line), [`list`]s of them, words and paths ([`text`]), the
//! [`mod@file`]s in which they stand, and the vocabulary of a router's law: its choices, the named
//! laws, the keys that set them, their ranges and what they mean, each spelt once.
//!
//! The scenario's reader, its schema and documentation, the simulator, the theory, the lab and
//! `xcpnet router add` take all of it from here. What the choices *do* is `engine/`'s; its
//! `law.h` is also the authority for what a named law consists of, and a test of `xcp-engine` holds
//! [`RouterConfig::preset`] and [`RouterConfig::check`] against it.
//!
//! A new choice is its C in `engine/`, its words in `choice`, a field of [`RouterConfig`] and a
//! row of [`KEYS`]; `docs/extend.md` walks through one.
//!
//! ```
//! use xcp_law::{Gain, KEYS, Preset, RouterConfig};
//!
//! let law = RouterConfig::preset(Preset::OwnRtt, 1_250_000);
//! assert_eq!((law.gain, law.gain.name()), (Gain::OwnRtt, "own-rtt"));
//! assert!(law.check().is_ok());
//! assert!(KEYS.iter().any(|key| key.name == "gain"));
//! ```

mod choice;
mod config;
pub mod file;
mod keys;
pub mod list;
pub mod quantity;
mod state;
pub mod text;
pub mod typed;
pub mod units;

pub use choice::{
    CapacityForXcp, CapacityKnown, Control, Gain, Input, Interval, Preset, Shuffle, Spare, Tcp,
};
pub use config::{ConfigError, INTERVAL_MAX_NS, RouterConfig, fraction};
pub use keys::{KEYS, Key, Takes};
pub use state::RouterState;
