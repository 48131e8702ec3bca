// What build.rs and tests/verifier.rs have in common: how the kernel programs are compiled.

/// The objects of `bpf/`, each of a source of its name.
const OBJECTS: [&str; 4] = ["router", "robust", "endpoint", "testing"];

/// Arguments of clang, in this crate's directory; `engine` and `bpf` are links to the
/// workspace's, so that the crate can be packaged.
const CLANG_ARGUMENTS: [&str; 7] = ["-I", "engine", "-mcpu=v3", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"];
