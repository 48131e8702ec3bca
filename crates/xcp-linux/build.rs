//! Compiles the kernel programs of `bpf/` with clang and generates their loaders.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo:rerun-if-changed=../../bpf");
    println!("cargo:rerun-if-changed=../../engine");
    for name in ["router", "endpoint", "testing"] {
        let built = SkeletonBuilder::new()
            .source(format!("../../bpf/{name}.bpf.c"))
            .obj(out.join(format!("{name}.bpf.o")))
            .clang_args(["-I", "../../engine", "-mcpu=v3", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
            .build_and_generate(out.join(format!("{name}.skel.rs")));
        if let Err(e) = built {
            panic!("bpf/{name}.bpf.c: {e:?}\nclang, libelf-dev and zlib1g-dev are needed: scripts/setup build installs them");
        }
    }
}
