//! Scenario files that name traces: what `read_text` makes of them, and what it says.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use xcp_scenario::{Overrides, load, read_text};

const SCENARIO: &str = r#"
duration = "1s"
[[link]]
name = "air"
between = ["S", "D"]
rate = "12mbit" # the greatest
rate-changes = "down.mahimahi"
delay = "20ms"
delay-changes = "traces/way.csv"
reverse = { rate = "1mbit", rate-changes = "traces/way.csv" }
[[flow]]
from = "S"
to = "D"
congestion = "xcp"
[[variant]]
name = "as it was"
[[variant]]
name = "another day"
set = { "link.air.rate-changes" = "traces/way.csv" }
"#;

fn directory(scenario: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("traces")).unwrap();
    fs::write(dir.path().join("down.mahimahi"), "1\n2\n4\n").unwrap();
    let table = "time_s,rate_mbps,delay_ms\n0,3,20\n0.5,6,35\n";
    fs::write(dir.path().join("traces/way.csv"), table).unwrap();
    let file = dir.path().join("air.toml");
    fs::write(&file, scenario).unwrap();
    (dir, file)
}

#[test]
fn a_trace_is_written_out_where_it_is_named() {
    let (_dir, file) = directory(SCENARIO);
    let text = read_text(&file, &[]).unwrap();
    assert_eq!(text.lines().count(), SCENARIO.lines().count(), "{text}");
    // By itself: nothing is read any more.
    let scenarios = load(Path::new("elsewhere.toml"), &text, &Overrides::none()).unwrap();
    let [plain, other] = [0, 1].map(|variant| &scenarios[variant].links[0].directions);
    let mbit = |steps: &[(u64, u64)]| -> Vec<(u64, u64)> {
        steps.iter().map(|(at, rate)| (at / 1_000_000, rate / 1_000_000)).collect()
    };
    let rates = mbit(&plain[0].rate_changes);
    assert_eq!((&rates[..3], rates.len()), (&[(0, 12), (2, 6), (4, 12)][..], 500));
    assert_eq!(plain[0].delay_changes, [(0, 20_000_000), (500_000_000, 35_000_000)]);
    assert_eq!(mbit(&plain[1].rate_changes), [(0, 3), (500, 6)]);
    assert_eq!(mbit(&other[0].rate_changes), [(0, 3), (500, 6)]);
}

#[test]
fn what_is_wrong_is_told_at_its_place() {
    for (name, what) in [
        ("nowhere", "nowhere cannot be read: No such file"),
        ("traces", "traces cannot be read: it is not a file"),
        ("../air.toml", "is neither beside the scenario file"),
        ("/etc/hostname", "is neither beside the scenario file"),
        ("", "is neither beside the scenario file"),
        ("air.toml", "air.toml cannot be read: line 2: neither"),
        ("bytes", "bytes cannot be read: stream did not contain valid UTF-8"),
        ("zero.csv", "zero.csv cannot be read: line 2: a rate of zero"),
        ("delays.csv", "delays.csv cannot be read: it contains no rates"),
        ("slow.csv", "slow.csv cannot be read: line 3: 7 bit/s is not from 8 bit/s"),
        ("fast.csv", "fast.csv cannot be read: line 2: 9000000000000 bit/s is not from 8 bit/s"),
        ("late.csv", "late.csv cannot be read: line 2: more than three years"),
        ("crowded", "crowded cannot be read: 700000 lines for 1 ms are more than 8 Tbit/s"),
    ] {
        let (dir, file) = directory(&SCENARIO.replace("down.mahimahi", name));
        fs::write(dir.path().join("bytes"), b"1\n\xff\n").unwrap();
        fs::write(dir.path().join("zero.csv"), "time_s,rate_bps\n0,0\n").unwrap();
        fs::write(dir.path().join("slow.csv"), "time_s,rate_bps\n0,8\n1,7\n").unwrap();
        fs::write(dir.path().join("fast.csv"), "time_s,rate_mbps\n0,9e6\n").unwrap();
        fs::write(dir.path().join("late.csv"), "time_s,rate_mbps\n2e8,9\n").unwrap();
        fs::write(dir.path().join("crowded"), "1\n".repeat(700_000)).unwrap();
        fs::write(dir.path().join("delays.csv"), "time_s,delay_ms\n0,1\n").unwrap();
        let told = read_text(&file, &[]).unwrap_err();
        let problem = &told.problems()[0];
        assert!(problem.what.contains(what), "{name}: {told}");
        assert_eq!((told.problems().len(), problem.line, problem.column), (1, 7, 16), "{told}");
    }
}

/// A text that is not from a file, and an override, have no directory to look in.
#[test]
fn a_text_alone_has_no_traces() {
    let told = load(Path::new("air.toml"), SCENARIO, &Overrides::none()).unwrap_err().to_string();
    assert!(told.contains("a trace can only be named in a scenario file"), "{told}");
    let (_dir, file) = directory(SCENARIO);
    let text = read_text(&file, &[]).unwrap();
    let set = Overrides::none().with("link.air.rate-changes", "down.mahimahi");
    let told = load(&file, &text, &set).unwrap_err().to_string();
    assert!(told.contains("name the trace in a scenario file"), "{told}");
}

#[test]
fn a_trace_lasts_as_long_as_the_longest_run() {
    let last = |scenario: &str, settings: &[(&str, &str)]| {
        let (_dir, file) = directory(scenario);
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let text = read_text(&file, &settings.iter().map(owned).collect::<Vec<_>>()).unwrap();
        let list = text.lines().find(|line| line.starts_with("rate-changes")).unwrap();
        let times = list.split("[\"").skip(1).map(|step| step.split('"').next().unwrap());
        xcp_law::quantity::time(times.last().unwrap()).unwrap() / 1_000_000
    };
    let of_length = |length: &str| SCENARIO.replace("\"1s\"", &format!("\"{length}\""));
    // The trace takes 4 ms, of which the third and fourth go together.
    assert_eq!(last(&of_length("8ms"), &[]), 6);
    assert_eq!(last(&of_length("8ms"), &[("duration", "16ms")]), 14);
    assert_eq!(last(&of_length("8ms"), &[("duration", "3ms,12ms"), ("seed", "20s")]), 10);
    assert_eq!(last(&of_length("8ms"), &[("duration", "4ms..16ms:4ms")]), 14, "a range");
    assert_eq!(last(&of_length("8ms"), &[(" duration", "'12ms'")]), 10, "as the reader has it");
    let variant = of_length("8ms").replace("set = {", "set = { duration = \"20ms\",");
    assert_eq!(last(&variant, &[]), 18);
    // What is wrong is said of the duration, not of the trace.
    let (_dir, file) = directory(&SCENARIO.replace("duration = \"1s\"", ""));
    let told = load(&file, &read_text(&file, &[]).unwrap(), &Overrides::none()).unwrap_err();
    assert!(told.to_string().contains("does not say how long the run lasts"), "{told}");
}
