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
        .warnings(true)
        .extra_warnings(true)
        .compile("xcp_engine");
}
