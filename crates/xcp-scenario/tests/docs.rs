//! `docs/scenario.md` says what the reader does: its tables are made from the reader's own, its
//! examples load.

use std::path::{Path, PathBuf};

use xcp_scenario::{Overrides, load, reference_tables};

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.md")
}

/// With `UPDATE_DOCS=1` the tables are written, otherwise they must be as they are.
#[test]
fn the_tables_are_the_readers() {
    let text = std::fs::read_to_string(path()).unwrap();
    let mut made = text.clone();
    for (name, table) in reference_tables() {
        let begin = format!("<!-- keys: {name} -->\n");
        let (head, rest) =
            made.split_once(&begin).unwrap_or_else(|| panic!("no place for the keys of {name}"));
        let (_, tail) = rest.split_once("<!-- end -->").unwrap();
        made = format!("{head}{begin}{table}<!-- end -->{tail}");
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path(), made).unwrap();
    } else {
        assert!(
            text == made,
            "docs/scenario.md is out of date: run UPDATE_DOCS=1 cargo test -p xcp-scenario --test \
                docs"
        );
    }
}

#[test]
fn the_examples_load() {
    let text = std::fs::read_to_string(path()).unwrap();
    let examples: Vec<&str> =
        text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() >= 4);
    let mut scenarios = 0;
    for example in examples {
        scenarios += load(Path::new("docs/scenario.md"), example, &Overrides::none())
            .unwrap_or_else(|e| panic!("{e}"))
            .len();
    }
    assert_eq!(scenarios, 1 + 1 + 1 + 2 + 3 + 2 + 1);
}

/// Links within the document lead to headings it has.
#[test]
fn the_anchors_exist() {
    let text = std::fs::read_to_string(path()).unwrap();
    for rest in text.split("](#").skip(1) {
        let anchor = rest.split(')').next().unwrap();
        assert!(text.contains(&format!("\n### {anchor}\n")), "no heading {anchor}");
    }
}
