//! Compiles engine/ through one C file.

fn main() {
    let engine = "../../engine";
    println!("cargo:rerun-if-changed=src/shim.c");
    println!("cargo:rerun-if-changed={engine}");
    cc::Build::new()
        .file("src/shim.c")
        .include(engine)
        .std("c11")
        .opt_level(2) // the law runs per packet: unoptimised test builds would crawl
        .flag_if_supported("-fno-semantic-interposition")
        // Two neighbouring words loaded as one vector wait for the two stores that have just written them.
        .flag_if_supported("-fno-tree-vectorize")
        .force_frame_pointer(false)
        .warnings(true)
        .extra_warnings(true)
        .compile("xcp_engine");
}
