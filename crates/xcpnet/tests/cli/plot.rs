//! `xcpnet plot`: every figure in both formats, and what is told where there is none.

use std::fs;
use std::process::Command;

use crate::{SMALL, home, listing, run, text};

/// One figure, of either format and the same bytes every time; with a clear word where there is
/// none.
#[test]
fn figures_are_drawn() {
    let home = home(&SMALL.replace("start-jitter", "bytes = \"3mb\"\nstart-jitter"));
    let dir = home.path();
    for (figure, words) in [
        ("series", &["Queue, packets", "Time (s)", ">XCP<", ">TCP<"][..]),
        (
            "series --quantity cwnd_packets",
            &["Congestion window, packets", "XCP: flow-1", "TCP: flow-2"],
        ),
        ("series --link bottleneck.reverse --quantity utilisation", &["Utilisation (%)"]),
        ("cdf", &["Completion time (", "Fraction of the flows (%)", ">TCP<"]),
        ("cdf --quantity goodput_bps --variant TCP", &["Goodput ("]),
        ("completion", &["Size (MB)", "Completion time ("]),
        ("delay", &["Mean round-trip time (ms)", "Goodput ("]),
    ] {
        let mut arguments = vec!["plot", "s.toml", "--figure"];
        arguments.extend(figure.split(' '));
        let output = run(0, &[&arguments[..], &["--out", "a.svg"]].concat(), dir);
        assert_eq!((text(&output.stderr), text(&output.stdout)), ("wrote a.svg\n", ""));
        let svg = fs::read_to_string(dir.join("a.svg")).unwrap();
        for word in words.iter().chain(&["<svg ", "<title>Two flows</title>", "</svg>\n"]) {
            assert!(svg.contains(word), "{figure}: no {word} in\n{svg}");
        }
        assert!(
            svg.matches("stroke-width=\"1\"").count() + svg.matches("<circle").count() > 0,
            "{figure}: {svg}"
        );
        run(0, &[&arguments[..], &["--out", "b.svg"]].concat(), dir);
        assert_eq!(fs::read_to_string(dir.join("b.svg")).unwrap(), svg, "the same every time");
        run(0, &[&arguments[..], &["--out", "sub/a.pdf"]].concat(), dir);
        let pdf = fs::read(dir.join("sub/a.pdf")).unwrap();
        assert!(pdf.starts_with(b"%PDF-") && pdf.trim_ascii_end().ends_with(b"%%EOF"));
        if let Ok(read) =
            Command::new("pdftotext").args(["sub/a.pdf", "-"]).current_dir(dir).output()
        {
            let read = text(&read.stdout).to_owned();
            for word in words.iter().map(|word| word.trim_matches(['<', '>'])) {
                assert!(read.contains(word), "{figure}: no {word} in {read}");
            }
        } else {
            xcp_skip::skipped!(
                "pdftotext",
                "whether others read the PDF: needs pdftotext (Debian: poppler-utils)"
            );
        }
    }
    fs::create_dir(dir.join("d.svg")).unwrap();
    for (arguments, told) in [
        ("--figure series --out a.png", "the name must end in .svg or .pdf"),
        ("--figure series --out sub.svg/a.svg --link nowhere", "there is no link \"nowhere\""),
        (
            "--figure series --out c.svg --quantity jain",
            "the quantities are queue_mean_packets, queue_max_packets",
        ),
        (
            "--figure cdf --out c.svg --quantity cwnd",
            "the quantities are completion_time_s, goodput_bps, rtt_mean_s",
        ),
        ("--figure series --out c.svg --set sample=off", "sample is \"off\""),
        ("--figure delay --out c.svg --link bottleneck", "only works with --figure series"),
        (
            "--figure delay --out c.svg --quantity goodput_bps",
            "only works with --figure series or cdf",
        ),
        ("--figure delay --out sub", "the name must end in .svg or .pdf"),
        ("--figure delay --out d.svg", "this is a directory"),
        ("--figure delay --out s.toml/x.svg", "a part of the path is a file"),
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let output = run(2, &[&["plot", "s.toml"], &words[..]].concat(), dir);
        assert!(text(&output.stderr).contains(told), "{arguments}: {}", text(&output.stderr));
    }
    // What the file cannot have is told before anything is run: this would not fit into any memory.
    let without_bytes = crate::home(SMALL);
    let endless =
        ["duration=100000000s", "sample=10s", "flow.flow.count=10000"].map(|set| ["--set", set]);
    for (arguments, told) in [
        ("series --quantity jain", "there is no quantity \"jain\""),
        ("series --link nowhere", "the links are bottleneck, bottleneck.reverse"),
        ("series --link bottleneck --quantity srtt_s", "this is a quantity of flows"),
        ("series --variant TCP --quantity phi_bps", "only a queue of kind \"xcp\""),
        ("cdf --quantity cwnd", "the quantities are completion_time_s"),
        ("cdf", "completion times need flows with `bytes`"),
        ("completion", "the flows need `bytes`"),
        ("series", "memory"),
    ] {
        let words: Vec<&str> = ["plot", "s.toml", "--out", "c.svg", "--figure"]
            .into_iter()
            .chain(arguments.split(' '))
            .chain(endless.into_iter().flatten())
            .collect();
        let output = run(2, &words, without_bytes.path());
        assert!(text(&output.stderr).contains(told), "{arguments}: {}", text(&output.stderr));
    }
    assert_eq!(listing(without_bytes.path()), ["s.toml"]);
    assert_eq!(
        listing(dir),
        ["a.svg", "b.svg", "d.svg", "s.toml", "sub"],
        "nothing is left of what failed"
    );
}
