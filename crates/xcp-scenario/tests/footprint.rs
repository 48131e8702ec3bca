//! Runs that cannot fit are refused with the line to blame; runs that fit are not.

use std::path::Path;

use xcp_scenario::{Loaded, Overrides, check, footprint, load_with_origins};

const GB: u64 = 1_000_000_000;

fn one(duration: &str, top: &str, link: &str, flow: &str) -> Loaded {
    let text = format!(
        "duration = \"{duration}\"\n{top}\n[[link]]\nname = \"l\"\nbetween = \
            [\"S\", \"D\"]\n{link}\n[[flow]]\nfrom = \"S\"\nto = \"D\"\ncongestion \
            = \"xcp\"\n{flow}\n"
    );
    load_with_origins(Path::new("my.toml"), &text, &Overrides::none())
        .unwrap_or_else(|e| panic!("{e}"))
        .remove(0)
}

fn told(l: &Loaded) -> String {
    check(&l.scenario, &l.origins, GB).expect_err("it does not fit").to_string()
}

#[test]
fn the_line_to_blame() {
    let flight = one("5000s", "", "rate = \"8tbit\"\ndelay = \"1500s\"", "");
    assert!(footprint(&flight.scenario).packets > 1_000_000_000_000);
    // Through a fast access link into a slow one that never drops.
    let slow = "rate = \"8tbit\"\ndelay = \"0s\"\n[[link]]\nbetween = [\"D\", \"E\"]\nrate \
        = \"1mbit\"\ndelay = \"1ms\"\nqueue = { limit = \"1000000000000p\" }";
    let queue = one(
        "100s",
        "",
        slow,
        "name = \"far\"\n[[flow]]\nfrom = \"S\"\nto = \"E\"\nudp = { rate = \"8tbit\" }",
    );
    let samples =
        one("10s", "sample = \"1us\"", "rate = \"10mbit\"\ndelay = \"10ms\"", "count = 100");
    let default_samples = one("10s", "", "rate = \"10mbit\"\ndelay = \"10ms\"", "count = 100000");
    let table: Vec<String> = [flight, queue, samples, default_samples].iter().map(told).collect();
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn what_the_flows_cannot_fill_is_not_counted() {
    // A limit of 10^12 packets, but in a minute 10 Mbit/s carry 50 000.
    let roomy = one(
        "60s",
        "",
        "rate = \"10mbit\"\ndelay = \"10ms\"\nqueue = { limit = \"1000000000000p\" }",
        "",
    );
    check(&roomy.scenario, &roomy.origins, GB).unwrap();
    // TCP, unlike datagrams, does not send much more than arrives.
    let slow = "rate = \"8tbit\"\ndelay = \"0s\"\n[[link]]\nbetween = [\"D\", \"E\"]\nrate \
        = \"1mbit\"\ndelay = \"1ms\"\nqueue = { limit = \"1000000000000p\" }";
    let tcp = one(
        "100s",
        "",
        slow,
        "bytes = 1000\nname = \"near\"\n[[flow]]\nfrom = \"S\"\nto = \"E\"\ncongestion = \"reno\"",
    );
    check(&tcp.scenario, &tcp.origins, GB).unwrap();
    // 10^12 packets would fit on the link, but the transfer has 700.
    let small = one("5000s", "", "rate = \"8tbit\"\ndelay = \"1500s\"", "bytes = \"1mb\"");
    check(&small.scenario, &small.origins, GB).unwrap();
}

#[test]
fn an_ordinary_run_takes_little() {
    let text = include_str!("files/good/four-flows.toml");
    let l = load_with_origins(Path::new("x.toml"), text, &Overrides::none()).unwrap().remove(0);
    assert!(footprint(&l.scenario).bytes < 10_000_000);
}
