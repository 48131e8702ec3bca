//! engine/ compiled as others compile it: strictly as C11, for BPF, and under the sanitizers with
//! hostile input.

use std::path::Path;
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Runs a compiler; `None`, said aloud, where it is not installed.
fn compile(compiler: &str, args: &[&str]) -> Option<Output> {
    match Command::new(compiler).current_dir(root()).args(args).output() {
        Ok(output) => Some(output),
        Err(e) => {
            xcp_skip::skipped!("compilers", "{compiler}: {e} (Debian: apt-get install {compiler})");
            None
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A scratch file that goes away with the test.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        Scratch(
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id())),
        )
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("the target directory's name is UTF-8")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Each header by itself, without any other included first, as strict C11 and without a warning.
#[test]
fn headers_stand_alone_as_c11() {
    for entry in std::fs::read_dir(root().join("engine")).expect("engine/ is there") {
        let path = entry.expect("readable").path();
        let file = path.to_str().expect("UTF-8");
        for compiler in ["gcc", "clang"] {
            let args = [
                "-std=c11",
                "-pedantic",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-ffreestanding",
                "-fsyntax-only",
                "-x",
                "c",
                file,
            ];
            if let Some(out) = compile(compiler, &args) {
                assert!(out.status.success(), "{compiler} {file}:\n{}", text(&out.stderr));
            }
        }
    }
}

/// What the kernel's BPF could not run does not get past this: calls to helper routines (128-bit
/// arithmetic, libc, soft floating point), signed division, more stack than there is.
#[test]
fn compiles_for_bpf() {
    let probe = "crates/xcp-engine/tests/c/bpf_probe.c";
    let args = [
        "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-Iengine", "-S",
        "-o", "-", probe,
    ];
    let Some(out) = compile("clang", &args) else { return };
    assert!(out.status.success(), "{}", text(&out.stderr));
    let assembly = text(&out.stdout);
    let code =
        || assembly.lines().map(str::trim).filter(|l| !l.starts_with('.') && !l.starts_with('#'));
    assert!(code().filter(|l| *l == "exit").count() >= 8, "eight programs were to be compiled");
    // The law's own parts (XCP_PART of types.h) are functions of this very file.
    let here = |name: &str| {
        assembly.lines().any(|l| l.starts_with(name) && l[name.len()..].starts_with(':'))
    };
    let calls: Vec<_> =
        code().filter(|l| l.strip_prefix("call ").is_some_and(|name| !here(name.trim()))).collect();
    assert!(calls.is_empty(), "calls to what a kernel program does not have: {calls:?}");
    let deepest = code()
        .flat_map(|l| {
            l.split("r10 - ").skip(1).filter_map(|rest| {
                rest.trim_end_matches(|c: char| !c.is_ascii_digit()).parse::<u32>().ok()
            })
        })
        .max();
    assert!(
        deepest.unwrap_or(0) <= 256,
        "programs that call these need stack too: {deepest:?} bytes"
    );
}

/// No floating point and no 128-bit types anywhere in engine/, whoever compiles it.
#[test]
fn no_types_that_bpf_lacks() {
    for entry in std::fs::read_dir(root().join("engine")).expect("engine/ is there") {
        let path = entry.expect("readable").path();
        let source = std::fs::read_to_string(&path).expect("readable");
        for word in source.split(|c: char| !c.is_alphanumeric() && c != '_') {
            assert!(
                !["float", "double", "__int128", "__uint128_t"].contains(&word),
                "{} in {}",
                word,
                path.display()
            );
        }
    }
}

/// Random and hostile input under the address and undefined-behaviour sanitizers: fuzz/engine.c
/// says what is fed and what must hold.
#[test]
fn hostile_input_under_sanitizers() {
    let program = Scratch::new("hostile");
    let mut ran = false;
    for compiler in ["gcc", "clang"] {
        let common = [
            "-std=c11",
            "-g",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-DXCP_STANDALONE",
            "-Iengine",
            "fuzz/engine.c",
            "-o",
            program.path(),
        ];
        let args =
            [&["-fsanitize=undefined,address", "-fno-sanitize-recover=all"][..], &common[..]]
                .concat();
        let Some(out) = compile(compiler, &args) else { continue };
        if !out.status.success() {
            let message = text(&out.stderr);
            assert!(message.contains("san"), "{compiler}:\n{message}");
            xcp_skip::skipped!(
                "sanitizers",
                "{compiler} has no sanitizer libraries here (on Debian, clang's are in \
                 libclang-rt-dev): {}",
                message.lines().next().unwrap_or_default()
            );
            continue;
        }
        for seed in ["1", "20050913"] {
            let out = Command::new(program.path())
                .args([seed, "25000"])
                .output()
                .expect("it was just built");
            assert!(out.status.success(), "{compiler}, seed {seed}:\n{}", text(&out.stderr));
        }
        ran = true;
    }
    if !ran {
        xcp_skip::skipped!("sanitizers", "no compiler with sanitizers");
    }
}
