//! A sweep that finds its directory in use: by one that is complete, was cut short, killed or
//! interrupted, is still running, or is another.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{FILES, GRID, SMALL, home, listing, results, run, text, xcpnet};

#[test]
fn complete_it_does_nothing_more() {
    let home = home(SMALL);
    run(0, &format!("{GRID} --out out"), home.path());
    let before = results(&home.path().join("out"));
    let output = run(0, &format!("{GRID} --out out"), home.path());
    assert_eq!(text(&output.stderr), "this sweep is complete: 36 runs in out\n");
    assert_eq!(text(&output.stdout), "");
    assert!(before == results(&home.path().join("out")));
    fs::remove_file(home.path().join("out/links.parquet")).unwrap();
    let output = run(2, &format!("{GRID} --out out"), home.path());
    assert!(
        text(&output.stderr).contains("out/links.parquet is missing"),
        "{}",
        text(&output.stderr)
    );
    run(0, &format!("{GRID} --out out --restart"), home.path());
    assert!(before == results(&home.path().join("out")));
}

/// What a kill or a loss of power leaves of the journal, at any byte, is gone on from.
#[test]
fn a_journal_cut_anywhere_gives_the_same_bytes() {
    let home = home(&SMALL.replace("300ms", "20ms").replace("100ms", "10ms"));
    let dir = home.path();
    let grid = "sweep s.toml --variant XCP --seeds 1..4 --out";
    run(0, &format!("{grid} whole"), dir);
    let expected = results(&dir.join("whole"));
    // A directory in the way lets every run be done and no result be written.
    fs::create_dir_all(dir.join("cut/.runs.parquet.part")).unwrap();
    let told = run(2, &format!("{grid} cut"), dir);
    assert!(text(&told.stderr).contains("cannot write cut/runs.parquet"), "{}", text(&told.stderr));
    assert!(
        text(&told.stderr).contains("4 of 4 runs are done and kept in cut"),
        "{}",
        text(&told.stderr)
    );
    fs::remove_dir(dir.join("cut/.runs.parquet.part")).unwrap();
    let journal = fs::read(dir.join("cut/sweep.journal")).unwrap();
    // Every byte is the journal's own test; here some within each part of it, and the ends of
    // lines.
    let ends = (0..journal.len()).filter(|&i| journal[i] == b'\n').flat_map(|i| [i, i + 1]);
    let mut cuts: Vec<usize> = (0..=journal.len()).step_by(101).chain(ends).collect();
    cuts.sort_unstable();
    cuts.dedup();
    for cut in cuts {
        fs::write(dir.join("cut/sweep.journal"), &journal[..cut]).unwrap();
        for name in FILES.map(|name| dir.join("cut").join(name)).iter().filter(|path| path.exists())
        {
            fs::remove_file(name).unwrap();
        }
        run(0, &format!("{grid} cut"), dir);
        assert!(results(&dir.join("cut")) == expected, "cut at {cut} of {}", journal.len());
    }
}

/// Lines of the journal, the two at its head not counted.
fn done(dir: &Path) -> usize {
    fs::read(dir.join("sweep.journal"))
        .unwrap_or_default()
        .iter()
        .filter(|&&b| b == b'\n')
        .count()
        .saturating_sub(2)
}

#[test]
fn killed_again_and_again_it_gives_the_same_bytes() {
    let home = home(SMALL);
    let dir = home.path();
    let grid = "sweep s.toml --set duration=2s --set flow.count=1..4 --seeds 1..15 --out";
    run(0, &format!("{grid} whole"), dir);
    let mut kills = 0;
    // One that was too fast to be caught is forgotten; not all of so many are.
    for _ in 0..100 {
        if kills == 5 {
            break;
        }
        let before = done(&dir.join("killed"));
        let mut child = xcpnet(&format!("{grid} killed --jobs 2"), dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while done(&dir.join("killed")) < before + 7 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            fs::remove_dir_all(dir.join("killed")).unwrap();
            kills = 0;
            continue;
        }
        kills += 1;
        assert!(done(&dir.join("killed")) >= before, "nothing done is lost");
    }
    assert_eq!(kills, 5, "it was never caught at work five times in a row");
    let output = run(0, &format!("{grid} killed"), dir);
    assert!(text(&output.stderr).starts_with("resuming: "), "{}", text(&output.stderr));
    assert!(results(&dir.join("killed")) == results(&dir.join("whole")));
    assert_eq!(listing(&dir.join("killed")), listing(&dir.join("whole")), "nothing else is left");
}

#[test]
fn interrupted_it_says_how_to_go_on() {
    let home = home(SMALL);
    let dir = home.path();
    let mut child = xcpnet("sweep s.toml --set duration=20ms,10000h --jobs 1 --out out", dir)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Both variants of the short one are done; the long one never will be.
    while done(&dir.join("out")) < 2 {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // Meanwhile nobody else may write there.
    let refused = run(2, "sweep s.toml --set duration=20ms,10000h --out out", dir);
    assert!(
        text(&refused.stderr).contains("another sweep is writing into out"),
        "{}",
        text(&refused.stderr)
    );
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()
    );
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(
        text(&output.stderr),
        "error: interrupted\n2 of 4 runs are done and kept in out; to resume: xcpnet sweep s.toml \
            --set duration=20ms,10000h --jobs 1 --out out\n"
    );
    assert_eq!(listing(&dir.join("out")), ["sweep.journal"]);
}

#[test]
fn another_sweep_is_left_alone() {
    let home = home(SMALL);
    let dir = home.path();
    run(0, "sweep s.toml --seeds 1..2 --out out", dir);
    let before = results(&dir.join("out"));
    let mut table = String::new();
    for arguments in
        ["--seeds 1..3", "--seeds 1..2 --variant TCP", "--seeds 1..2 --set queue.target=0"]
    {
        let output = run(2, &format!("sweep s.toml {arguments} --out out"), dir);
        writeln!(table, "──── {arguments}\n{}", text(&output.stderr)).unwrap();
    }
    fs::write(dir.join("s.toml"), SMALL.replace("10mbit", "20mbit")).unwrap();
    let output = run(2, "sweep s.toml --seeds 1..2 --out out", dir);
    writeln!(table, "──── the file was changed\n{}", text(&output.stderr)).unwrap();
    insta::assert_snapshot!(table);
    assert!(before == results(&dir.join("out")));
    run(0, "sweep s.toml --seeds 1..2 --out out --restart", dir);
    assert!(before != results(&dir.join("out")));
}
