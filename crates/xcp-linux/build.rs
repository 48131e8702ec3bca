//! Compiles the kernel programs of `bpf/` with clang and generates their loaders. `XCPNET_CLANG`
//! names another clang than the one on the path.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

include!("compile.rs");

/// No program's name. Nobody reads the loaders, and a minimal installation of Rust has the proxy
/// `rustfmt`, which fails, but not what it stands for.
const NOT_FORMATTED: &str = "/not/formatted";

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-changed=engine");
    println!("cargo:rerun-if-changed=compile.rs");
    println!("cargo:rerun-if-env-changed=XCPNET_CLANG");
    for name in OBJECTS {
        let mut builder = SkeletonBuilder::new();
        builder
            .source(format!("bpf/{name}.bpf.c"))
            .obj(out.join(format!("{name}.bpf.o")))
            .rustfmt(NOT_FORMATTED)
            .clang_args(CLANG_ARGUMENTS);
        if let Some(clang) = env::var_os("XCPNET_CLANG") {
            builder.clang(clang);
        }
        if let Err(e) = builder.build_and_generate(out.join(format!("{name}.skel.rs"))) {
            panic!(
                "bpf/{name}.bpf.c: {e:?}\nclang, libelf-dev and zlib1g-dev are needed: \
                    scripts/setup build installs them"
            );
        }
    }
}
