//! The kernel programs as generated from `bpf/`; only the modules that load them look in here.

/// A module of what libbpf-cargo made of a program; lints are for what people write.
macro_rules! generated {
    ($name:ident, $from:literal, $skeleton:literal) => {
        #[doc = concat!("`", $from, "`.")]
        #[allow(
            missing_docs,
            unused,
            clippy::all,
            clippy::undocumented_unsafe_blocks,
            clippy::allow_attributes_without_reason,
            reason = "generated"
        )]
        pub(crate) mod $name {
            include!(concat!(env!("OUT_DIR"), $skeleton));
        }
    };
}

generated!(router, "bpf/router.bpf.c", "/router.skel.rs");
generated!(robust, "bpf/robust.bpf.c", "/robust.skel.rs");
generated!(endpoint, "bpf/endpoint.bpf.c", "/endpoint.skel.rs");
generated!(testing, "bpf/testing.bpf.c", "/testing.skel.rs");
