//! The list of mutants against engine/: no mutant outlives the line that it spoils, and each spoils
//! something. That claims notice them is `make mutants`.

use std::collections::HashSet;
use std::path::Path;

#[path = "../src/mutants/constants.rs"]
mod constants;
#[path = "../src/mutants/edits.rs"]
mod edits;
#[path = "../src/mutants/list.rs"]
mod list;
#[path = "../src/mutants/parts.rs"]
mod parts;

use constants::CONSTANTS;
use list::{MUTANTS, Mutant};
use parts::PARTS;

fn all() -> impl Iterator<Item = &'static Mutant> {
    MUTANTS.iter().chain(PARTS).chain(CONSTANTS)
}

#[test]
fn every_right_text_stands_once_in_its_file() {
    let engine = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../engine"));
    for mutant in all() {
        assert!(!mutant.edits.is_empty(), "{}", mutant.name);
        for edit in mutant.edits {
            let text = std::fs::read_to_string(engine.join(edit.file)).expect("the file is there");
            // However its lines are broken.
            let bare = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(
                bare(&text).matches(&bare(edit.right)).count(),
                1,
                "{}: {:?} in {}",
                mutant.name,
                edit.right,
                edit.file
            );
            assert_ne!(edit.right, edit.wrong, "{}", mutant.name);
        }
    }
}

#[test]
fn no_two_have_one_name_or_do_the_same() {
    let mut names = HashSet::new();
    let mut deeds = HashSet::new();
    for mutant in all() {
        assert!(names.insert(mutant.name), "{}", mutant.name);
        assert!(!mutant.what.is_empty());
        let deed: Vec<_> = mutant.edits.iter().map(|e| (e.file, e.right, e.wrong)).collect();
        assert!(deeds.insert(deed), "{}", mutant.name);
    }
}
