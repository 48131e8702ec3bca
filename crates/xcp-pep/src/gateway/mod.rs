//! What of the machine has to be set up, and is taken back: packets diverted ([`rules`]), XCP on the long link ([`wan`]), settings of the network
//! ([`state`] remembers what they were). Whatever can, hangs on a descriptor of this process and goes with it; for the rest [`keeper`] waits for its
//! end. [`privileges`] are dropped when all is done.

pub mod keeper;
pub mod privileges;
pub mod rules;
pub mod state;
pub mod wan;
