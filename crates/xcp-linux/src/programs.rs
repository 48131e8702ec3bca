//! The kernel programs as generated from `bpf/`; only the modules that load them look in here.

/// `bpf/router.bpf.c`.
#[allow(missing_docs, unused, clippy::all, clippy::undocumented_unsafe_blocks, reason = "generated")]
pub(crate) mod router {
    include!(concat!(env!("OUT_DIR"), "/router.skel.rs"));
}

/// `bpf/endpoint.bpf.c`.
#[allow(missing_docs, unused, clippy::all, clippy::undocumented_unsafe_blocks, reason = "generated")]
pub(crate) mod endpoint {
    include!(concat!(env!("OUT_DIR"), "/endpoint.skel.rs"));
}

/// `bpf/nothing.bpf.c`.
#[allow(missing_docs, unused, clippy::all, clippy::undocumented_unsafe_blocks, reason = "generated")]
pub(crate) mod nothing {
    include!(concat!(env!("OUT_DIR"), "/nothing.skel.rs"));
}
