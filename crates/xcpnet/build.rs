//! Collects `experiments/PAPER/FIGURE.toml` and what `README.md` says of each paper into the
//! program, so that `xcpnet reproduce` works wherever it is installed; and the engine of
//! playground pages, where `make wasm` has built it.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn entries(dir: &Path) -> Vec<PathBuf> {
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut paths: Vec<PathBuf> =
        fs::read_dir(dir).into_iter().flatten().filter_map(|e| e.ok().map(|e| e.path())).collect();
    paths.sort();
    paths
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
    format!("/// The engine of pages, compressed.\npub const ENGINE: Option<&[u8]> = {what};\n")
}

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let mut list = String::from("&[\n");
    let mut papers = String::from("&[\n");
    for paper in entries(&manifest.join("experiments")).into_iter().filter(|p| p.is_dir()) {
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
