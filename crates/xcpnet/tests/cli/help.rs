//! What the program says of itself: its help, its version, the schema of its files.

use std::path::Path;

use serde_json::Value;

use crate::{run, text};

#[test]
fn the_schema_is_json() {
    let output = run(0, &["schema"], Path::new("/"));
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(schema["$schema"].as_str().unwrap().contains("json-schema.org"));
}

#[test]
fn help_and_version() {
    let output = run(0, &["--help"], Path::new("/"));
    assert!(text(&output.stdout).contains("Exit status"));
    let output = run(0, &["run", "--help"], Path::new("/"));
    assert!(text(&output.stdout).contains("Examples:"));
    let output = run(0, &["--version"], Path::new("/"));
    assert_eq!(text(&output.stdout), format!("xcpnet {}\n", env!("CARGO_PKG_VERSION")));
    run(2, &["frobnicate"], Path::new("/"));
}
