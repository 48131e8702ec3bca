//! The bytes of a connection, one way: from one socket to the other, by splice(2) where there are
//! many, with what is read and not yet written held in a pipe from a pool of limited size. [`way`]
//! decides, without a socket in sight; [`wire`] does it with sockets, [`sealed`] where one of them
//! is encrypted; [`pipe`] is the pool.

pub mod pipe;
pub mod sealed;
pub mod way;
pub mod wire;
