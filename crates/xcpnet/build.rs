//! Collects `experiments/PAPER/FIGURE.toml` and what `README.md` says of each paper into the
//! program, so that `xcpnet reproduce` works wherever it is installed; and a fingerprint of what
//! results come from, so that the cache of `reproduce` knows results of another simulator; and the
//! engine of playground pages, where `make wasm` has built it.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

include!("src/reproduce/fingerprint.rs");

/// All that decides what a simulation gives: the law, the simulator, the reader of scenarios, the
/// libraries' versions.
const SIMULATOR: [&str; 8] = [
    "engine",
    "crates/xcp-engine/src",
    "crates/xcp-engine/build.rs",
    "crates/xcp-scenario/src",
    "crates/xcp-sim/src",
    "crates/xcp-sim/Cargo.toml",
    "Cargo.toml",
    "Cargo.lock",
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

/// The engine if it is there. The directory always is, so that cargo sees it come.
fn engine(manifest: &Path) -> String {
    let dir = manifest.join("engine");
    println!("cargo::rerun-if-changed={}", dir.display());
    let what = match dir.join("engine.wasm.gz").canonicalize() {
        Ok(file) => {
            println!("cargo::rerun-if-changed={}", file.display());
            format!("Some(include_bytes!({file:?}))")
        }
        Err(_) => "None".to_owned(),
    };
    format!("/// The engine of pages, compressed.\nconst ENGINE: Option<&[u8]> = {what};\n")
}

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let root = manifest.join("../..");
    let mut hash = Fingerprint::new();
    SIMULATOR.iter().for_each(|part| add(&mut hash, &root, &root.join(part)));
    println!("cargo::rustc-env=XCPNET_SIMULATOR={}", hash.hex());
    let mut list = String::from("&[\n");
    let mut papers = String::from("&[\n");
    for paper in entries(&root.join("experiments")).into_iter().filter(|p| p.is_dir()) {
        let name =
            |p: &Path| p.file_stem().expect("an entry has a name").to_string_lossy().into_owned();
        if let Ok(about) = paper.join("README.md").canonicalize() {
            println!("cargo::rerun-if-changed={}", about.display());
            writeln!(papers, "    ({:?}, include_str!({:?})),", name(&paper), about)
                .expect("writing to a string");
        }
        for file in
            entries(&paper).into_iter().filter(|f| f.extension().is_some_and(|e| e == "toml"))
        {
            let path = file.canonicalize().expect("the file was just listed");
            writeln!(
                list,
                "    ({:?}, {:?}, include_str!({:?})),",
                name(&paper),
                name(&file),
                path
            )
            .expect("writing to a string");
        }
    }
    list.push_str("]\n");
    papers.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    fs::write(out.join("experiments.rs"), list).expect("the build directory is writable");
    fs::write(out.join("engine.rs"), engine(&manifest)).expect("the build directory is writable");
    fs::write(out.join("papers.rs"), papers).expect("the build directory is writable");
}
