//! The page as text, without a browser: what is on it, what it says is not, how large it is.

use xcp_model::run::{GroupSummary, Run};
use xcp_model::spread::Percentiles;
use xcp_report::{Report, html};

use crate::common::{Manner, run};
use crate::page;

#[test]
fn the_page_is_the_same_every_time_and_names_no_host() {
    let (_, once) = page(4);
    let (_, again) = page(4);
    assert!(once == again);
    let own: String = once.split("/*! https://github.com/leeoniya/uPlot").collect();
    let own = own.replace("http://www.w3.org/2000/svg", "");
    assert!(
        !own.contains("https://") && !own.contains("http://"),
        "nothing in the page points outside it but uPlot's note of its origin"
    );
}

/// Long runs and large networks: drawn in groups, and the page says so.
#[test]
fn what_is_left_out_is_told() {
    let mut long = run(Manner::Xcp, 1);
    let times = std::sync::Arc::new((1..=9000).collect::<Vec<u64>>());
    for series in &mut long.series {
        series.times = std::sync::Arc::clone(&times);
        series.values = vec![1.0; 9000].into();
    }
    let some = long.summary.links["S-R"].clone();
    long.summary.links.extend((0..50).map(|i| (format!("access-{i}"), some.clone())));
    let report = Report {
        runs: &[long],
        scenarios: &[],
        sources: &[],
        verdicts: &[],
        references: &[],
        command: "",
        playgrounds: &[],
        version: "",
    };
    let text = html(&report);
    assert!(text.contains("\"bucket\":3"), "9000 samples in groups of three");
    assert!(text.contains("drawn in equal groups"));
    assert!(text.contains("Of 53 link directions the page shows 40"));
}

/// What one should know before believing the numbers is on the page, and that a measurement is no
/// simulation.
#[test]
fn notes_are_on_the_page() {
    let told = |run: Run| {
        let text = html(&Report {
            runs: &[run],
            scenarios: &[],
            sources: &[],
            verdicts: &[],
            references: &[],
            command: "",
            playgrounds: &[],
            version: "",
        });
        (
            text.contains("<h2 id=\"notes\">"),
            text.contains("the line was 12 ms late"),
            text.contains("give the same numbers"),
        )
    };
    assert_eq!(told(run(Manner::Xcp, 1)), (false, false, true));
    let mut measured = run(Manner::Xcp, 1);
    measured.summary.backend = "linux".into();
    measured.summary.notes = vec!["the line was 12 ms late".into()];
    assert_eq!(told(measured), (true, true, false));
}

/// Nothing is offered that is not there: no plots without series, no groups without times; and what
/// there is has its percentiles.
#[test]
fn without_series_there_are_no_plots() {
    let page = |run: Run| {
        let runs = [run];
        html(&Report {
            runs: &runs,
            scenarios: &[],
            sources: &[],
            verdicts: &[],
            references: &[],
            command: "",
            playgrounds: &[],
            version: "",
        })
    };
    let mut run = run(Manner::Xcp, 1);
    let before = page(run.clone());
    assert!(
        before.contains("<section class=\"row\"")
            && before.contains("<div class=\"tools\"")
            && !before.contains("id=\"groups\"")
    );
    run.series.clear();
    let times = Percentiles { p50: 0.0125, p95: 0.5, p99: 2.0 };
    run.summary.groups.push(GroupSummary {
        name: "web".into(),
        from: "S".into(),
        to: "D".into(),
        flows: 7,
        completed: 5,
        completion_time: Some(times),
        rtt: None,
    });
    let after = page(run);
    assert!(!after.contains("<section class=\"row\"") && !after.contains("<div class=\"tools\""));
    assert!(after.contains("There are no curves"));
    assert!(
        after.contains("id=\"groups\"")
            && after.contains("<td class=\"n\">12.5 ms<br><small>500 ms – 2.00 s</small></td>")
    );
}

#[test]
fn without_runs_there_is_still_a_page() {
    let report = Report {
        runs: &[],
        scenarios: &[],
        sources: &[],
        verdicts: &[],
        references: &[],
        command: "",
        playgrounds: &[],
        version: "",
    };
    assert!(html(&report).contains("No runs"));
}

#[test]
fn size_is_reasonable() {
    // Three runs of a hundred flows and 600 samples: groups, not every flow's curve.
    let (_, text) = page(120);
    assert!(text.len() < 400_000, "{} bytes", text.len());
}
