//! How much of every kernel program the verifier has to look at, as this kernel's tells. It gives
//! up at a million instructions; another kernel's or another compiler's share of that may be twice
//! as large, so that a quarter is what a program may take here.

use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::Command;

use libbpf_cargo::SkeletonBuilder;
use libbpf_rs::ObjectBuilder;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{DataSec, Var};

include!("../compile.rs");

/// Instructions, each as often as the verifier comes by.
const MOST: u32 = 250_000;

/// What the endpoint can do without: kernels that are locked down may not have its kind.
const REFUSED: &str = "xcp_show";

/// clang as it is called, and the newest that has a number in its name.
fn compilers() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut numbered: Vec<(u32, PathBuf)> = Vec::new();
    for entry in std::env::split_paths(&path)
        .filter_map(|directory| directory.read_dir().ok())
        .flatten()
        .flatten()
    {
        let name = entry.file_name();
        if let Some(number) =
            name.to_str().and_then(|name| name.strip_prefix("clang-")?.parse().ok())
        {
            numbered.push((number, entry.path()));
        }
    }
    numbered.sort();
    std::iter::once(PathBuf::from("clang"))
        .chain(numbered.pop().map(|(_, newest)| newest))
        .collect()
}

/// What a compiler calls itself, its first line.
fn version(clang: &Path) -> Option<String> {
    let told = Command::new(clang).arg("--version").output().ok()?;
    String::from_utf8_lossy(&told.stdout).lines().next().map(str::to_owned)
}

fn verified(program: BorrowedFd<'_>) -> io::Result<u32> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = mem::size_of::<libbpf_sys::bpf_prog_info>() as u32;
    // SAFETY: the buffer is as long as it says and outlives the call.
    let done = unsafe {
        libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &raw mut info, &raw mut length)
    };
    if done == 0 { Ok(info.verified_insns) } else { Err(io::Error::from_raw_os_error(-done)) }
}

/// Where in an object's constant data a variable lies.
fn place(object: &Path, variable: &str) -> usize {
    let btf = Btf::from_path(object).unwrap();
    let section: DataSec<'_> = btf.type_by_name(".rodata").unwrap();
    let found = section.iter().find(|entry| {
        btf.type_by_id::<Var<'_>>(entry.ty).is_some_and(|var| var.name() == Some(variable.as_ref()))
    });
    found.unwrap_or_else(|| panic!("{}: no {variable}", object.display())).offset as usize
}

/// The router's settings that bring code with them, with a value for each: the verifier takes out
/// what is not asked for.
const ROUTERS: [&[(&str, u32)]; 4] = [
    &[],
    &[("police", 1)],
    &[("police", 2), ("xcp_class", 1), ("others_class", 2)],
    &[("urgent_class", 1)],
];

/// The programs of an object and how many instructions of each were looked at. The endpoint's
/// settings stay unknown to the verifier, so that it looks at every setting's way. One program may
/// be left out.
fn load(
    object: &Path,
    settings: &[(&str, u32)],
    without: Option<&str>,
) -> libbpf_rs::Result<BTreeMap<String, u32>> {
    let mut open = ObjectBuilder::default().open_file(object).unwrap();
    for mut map in open.maps_mut() {
        // The router's are lengths of headers, which have to be numbers.
        if map.name() == "endpoint.rodata" {
            map.set_map_flags(0).unwrap();
        }
        if map.name().to_string_lossy().ends_with(".rodata") {
            for (variable, value) in settings {
                let at = place(object, variable);
                map.initial_value_mut().expect("constant data")[at..at + 4]
                    .copy_from_slice(&value.to_ne_bytes());
            }
        }
    }
    for mut program in open.progs_mut() {
        if without.is_some_and(|name| program.name() == name) {
            program.set_autoload(false);
        }
    }
    let loaded = open.load()?;
    Ok(loaded
        .progs()
        .filter(|program| without.is_none_or(|name| program.name() != name))
        .map(|program| {
            (program.name().to_string_lossy().into_owned(), verified(program.as_fd()).unwrap())
        })
        .collect())
}

#[test]
fn every_program_is_far_below_what_the_verifier_looks_at() {
    if !xcp_linux::error::is_root() {
        return xcp_skip::skipped!(
            "root",
            "how much of the programs the verifier has to look at: needs root"
        );
    }
    let compilers = compilers();
    let versions: Vec<String> = compilers.iter().filter_map(|clang| version(clang)).collect();
    if versions.len() < 2 || versions[0] == versions[1] {
        xcp_skip::skipped!(
            "second-clang",
            "the programs of a second compiler: there is none but clang ({versions:?}); \
                scripts/setup test installs the newest"
        );
    }
    let directory = tempfile::tempdir().unwrap();
    let mut most = 0;
    for (number, (clang, version)) in compilers.iter().zip(&versions).enumerate() {
        println!("{version}");
        for name in OBJECTS {
            let object = directory.path().join(format!("{name}.{number}.o"));
            let mut builder = SkeletonBuilder::new();
            builder
                .source(format!("bpf/{name}.bpf.c"))
                .obj(&object)
                .clang(clang)
                .clang_args(CLANG_ARGUMENTS);
            builder.build().unwrap_or_else(|e| panic!("bpf/{name}.bpf.c with {version}: {e:?}"));
            for &settings in if name == "router" { &ROUTERS[..] } else { &ROUTERS[..1] } {
                let loaded = load(&object, settings, None).or_else(|all| {
                    let fewer = load(&object, settings, Some(REFUSED)).map_err(|_| all)?;
                    xcp_skip::skipped!(
                        "kernel",
                        "{REFUSED} in the verifier: this kernel refuses it"
                    );
                    Ok::<_, libbpf_rs::Error>(fewer)
                });
                let loaded = loaded.unwrap_or_else(|e| panic!("{}: {e:#}", object.display()));
                for (program, instructions) in loaded {
                    println!("  {name:10} {program:22} {instructions:>9} {settings:?}");
                    assert!(instructions > 0, "{program}: the kernel does not tell");
                    assert!(
                        instructions < MOST,
                        "{program} of bpf/{name}.bpf.c by {version}, {settings:?}: {instructions} \
                            instructions, {MOST} allowed"
                    );
                    most = most.max(instructions);
                }
            }
        }
    }
    println!("at most {most} of {MOST}");
}
