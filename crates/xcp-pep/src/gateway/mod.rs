//! What of the machine has to be set up, and is taken back, by the one who has the long link
//! ([`owner`]) and with numbers of its own ([`slot`]): packets diverted ([`rules`]), XCP on the
//! long link ([`wan`]), settings of the network ([`state`] remembers what they were). Whatever can,
//! hangs on a descriptor of this process and goes with it; for the rest [`keeper`] waits for its
//! end. [`privileges`] are dropped when all is done.

pub mod found;
pub mod keeper;
pub mod look;
pub mod owner;
pub mod privileges;
pub mod rules;
pub mod slot;
pub mod state;
pub mod wan;
