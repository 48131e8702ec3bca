//! The kernel programs as generated from `bpf/`; only the modules that load them look in here.

/// `bpf/router.bpf.c`.
#[allow(
    missing_docs,
    unused,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]
pub(crate) mod router {
    include!(concat!(env!("OUT_DIR"), "/router.skel.rs"));
}

/// `bpf/robust.bpf.c`.
#[allow(
    missing_docs,
    unused,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]
pub(crate) mod robust {
    include!(concat!(env!("OUT_DIR"), "/robust.skel.rs"));
}

/// `bpf/endpoint.bpf.c`.
#[allow(
    missing_docs,
    unused,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]
pub(crate) mod endpoint {
    include!(concat!(env!("OUT_DIR"), "/endpoint.skel.rs"));
}

/// `bpf/testing.bpf.c`.
#[allow(
    missing_docs,
    unused,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]
pub(crate) mod testing {
    include!(concat!(env!("OUT_DIR"), "/testing.skel.rs"));
}
