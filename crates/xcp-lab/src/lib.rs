//! Backend 2: a scenario in network namespaces, with real kernel TCP and xcpnet's kernel programs.

pub mod line;
