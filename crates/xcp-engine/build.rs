//! Compiles engine/ through one C file; with the feature `mutants` a copy of it that can be wrong
//! in the ways of `src/mutants/`.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "src/mutants/constants.rs"]
mod constants;
#[path = "src/mutants/edits.rs"]
mod edits;
#[path = "src/mutants/list.rs"]
mod list;
#[path = "src/mutants/parts.rs"]
mod parts;

use constants::CONSTANTS;
use list::{MUTANTS, Mutant};
use parts::PARTS;

/// All of them, as they are numbered from 1.
fn mutants() -> impl Iterator<Item = (usize, &'static Mutant)> {
    (1..).zip(MUTANTS.iter().chain(PARTS).chain(CONSTANTS))
}

fn main() {
    // A link to the workspace's, so that the crate can be packaged.
    let engine = "engine";
    println!("cargo:rerun-if-changed=src/shim.c");
    println!("cargo:rerun-if-changed=src/mutants");
    println!("cargo:rerun-if-changed={engine}");
    let mut build = cc::Build::new();
    if env::var_os("CARGO_FEATURE_MUTANTS").is_some() {
        let copy = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo")).join("mutants");
        spoil(Path::new(engine), &copy);
        build.file(copy.join("mutants.c")).include(&copy);
    } else {
        build.file("src/shim.c").include(engine);
    }
    // WebAssembly has no symbols that another library could replace, and clang warns there.
    if env::var("CARGO_CFG_TARGET_FAMILY").as_deref() != Ok("wasm") {
        build.flag_if_supported("-fno-semantic-interposition");
    }
    build
        .std("c11")
        .opt_level(2) // the law runs per packet: unoptimised test builds would crawl
        // Two neighbouring words loaded as one vector wait for the two stores that have just
        // written them.
        .flag_if_supported("-fno-tree-vectorize")
        .force_frame_pointer(false)
        .warnings(true)
        .extra_warnings(true)
        .compile("xcp_engine");
}

/// Writes a copy of engine/ in which each thread can choose a mutant, and the C file that has it
/// all.
fn spoil(engine: &Path, copy: &Path) {
    fs::create_dir_all(copy).expect("the build directory is writable");
    for entry in
        fs::read_dir(engine).expect("engine/ is there").map(|e| e.expect("readable").path())
    {
        let file = entry.file_name().expect("an entry has a name").to_str().expect("UTF-8");
        let text = fs::read_to_string(&entry).expect("readable");
        fs::write(copy.join(file), spoiled(file, &text)).expect("the build directory is writable");
    }
    let shim = Path::new("src/shim.c").canonicalize().expect("it is there");
    let mut main = String::new();
    for (number, mutant) in mutants() {
        main.push_str(&format!("/* {number}: {}: {} */\n", mutant.name, mutant.what));
    }
    main.push_str(
        "static _Thread_local int xcp_mutant;\nvoid xcp_mutant_select(int mutant) \
        {\n    xcp_mutant = mutant;\n}\n",
    );
    main.push_str(&format!("#include {shim:?}\n"));
    fs::write(copy.join("mutants.c"), main).expect("the build directory is writable");
}

/// A file with the wrong lines beside the right ones.
fn spoiled(file: &str, text: &str) -> String {
    let mut places: Vec<(Range<usize>, String)> = Vec::new();
    for (number, mutant) in mutants() {
        for edit in mutant.edits.iter().filter(|e| e.file == file) {
            let at = find(text, edit.right)
                .unwrap_or_else(|| panic!("{}: {file} has no {:?}", mutant.name, edit.right));
            // Two statements would not both stay where the first one is all that an `if` has.
            assert!(
                !edit.right.trim_end_matches(';').contains(';'),
                "{}: more than an expression or a statement: {:?}",
                mutant.name,
                edit.right
            );
            let known = places.iter().position(|place| place.0 == at);
            let place = known.unwrap_or_else(|| {
                places.push((at.clone(), edit.right.to_owned()));
                places.len() - 1
            });
            let (wrong, other) = (edit.wrong, &places[place].1);
            places[place].1 = if edit.right.ends_with(';') {
                format!("{{ if (xcp_mutant == {number}) {{ {wrong} }} else {{ {other} }} }}")
            } else {
                format!("(xcp_mutant == {number} ? ({wrong}) : ({other}))")
            };
        }
    }
    places.sort_by_key(|(at, _)| (at.start, at.end));
    let mut result = String::new();
    let mut done = 0;
    for (at, code) in &places {
        assert!(at.start >= done, "two texts of {file} overlap at {:?}", &text[at.clone()]);
        result.push_str(&text[done..at.start]);
        result.push_str(code);
        done = at.end;
    }
    result.push_str(&text[done..]);
    result
}

/// Where a piece of C stands first, however its lines are broken.
fn find(text: &str, wanted: &str) -> Option<Range<usize>> {
    let bare = |c: &u8| !c.is_ascii_whitespace();
    let wanted: Vec<u8> = wanted.bytes().filter(bare).collect();
    let kept: Vec<(usize, u8)> = text.bytes().enumerate().filter(|(_, c)| bare(c)).collect();
    let same = |w: &[(usize, u8)]| w.iter().map(|(_, c)| c).eq(&wanted);
    let found = kept.windows(wanted.len()).find(|w| same(w))?;
    Some(found[0].0..found[found.len() - 1].0 + 1)
}
