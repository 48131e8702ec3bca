//! Fingerprints of what results come from: of the simulator, so that the cache of `reproduce` knows
//! results of another one; and of what makes a sweep's tables, so that no sweep is half by one
//! build and half by another.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

include!("src/fingerprint.rs");

/// All that decides what a simulation gives: the law, the simulator, the reader of scenarios, the
/// libraries' versions.
const SIMULATOR: [&str; 11] = [
    // By the link to it, which is a directory where the sources were packed.
    "crates/xcp-engine/engine",
    "crates/xcp-law/src",
    "crates/xcp-model/src",
    "crates/xcp-elements/src",
    "crates/xcp-engine/src",
    "crates/xcp-engine/build.rs",
    "crates/xcp-scenario/src",
    "crates/xcp-sim/src",
    "crates/xcp-sim/Cargo.toml",
    "Cargo.toml",
    "Cargo.lock",
];

/// What else decides the bytes of a sweep's tables.
const TABLES: [&str; 4] = [
    "crates/xcp-sweep/src",
    "crates/xcp-report/src/sweep.rs",
    "crates/xcp-report/src/parquet.rs",
    "crates/xcp-report/src/columns.rs",
];

fn entries(dir: &Path) -> Vec<PathBuf> {
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut paths: Vec<PathBuf> =
        fs::read_dir(dir).into_iter().flatten().filter_map(|e| e.ok().map(|e| e.path())).collect();
    paths.sort();
    paths
}

/// Adds a file, or what is below a directory, by its name and content.
fn add(hash: &mut Fingerprint, root: &Path, path: &Path) {
    if path.is_dir() {
        entries(path).iter().for_each(|below| add(hash, root, below));
    } else if let Ok(content) = fs::read(path) {
        println!("cargo::rerun-if-changed={}", path.display());
        hash.add(path.strip_prefix(root).unwrap_or(path).to_string_lossy().as_bytes());
        hash.add(&content);
    }
}

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let root = manifest.join("../..");
    let mut hash = Fingerprint::new();
    // Where only this crate is there, from a registry, its version stands for the others.
    hash.add(env!("CARGO_PKG_VERSION").as_bytes());
    SIMULATOR.iter().for_each(|part| add(&mut hash, &root, &root.join(part)));
    println!("cargo::rustc-env=XCPNET_SIMULATOR={}", hash.hex());
    TABLES.iter().for_each(|part| add(&mut hash, &root, &root.join(part)));
    println!("cargo::rustc-env=XCPNET_SWEEP={}", hash.hex());
}
