//! What files that are wrong are told: one snapshot for a person to read through.

use std::fmt::Write;
use std::path::Path;

use xcp_scenario::{Overrides, load, load_file};

const LINK: &str = "[[link]]\nbetween = [\"S\", \"D\"]\nrate = \"10mbit\"\ndelay = \"10ms\"\n";
const FLOW: &str = "[[flow]]\nfrom = \"S\"\nto = \"D\"\ncongestion = \"reno\"\n";

/// A file that is right but for what is added to its top, its link, its flow, its end.
fn file(top: &str, link: &str, flow: &str, end: &str) -> String {
    let duration = if top.contains("duration") { "" } else { "duration = \"60s\"\n" };
    format!("{duration}{top}\n{LINK}{link}\n{FLOW}{flow}\n{end}\n")
}

fn top(line: &str) -> String {
    file(line, "", "", "")
}

fn link(line: &str) -> String {
    file("", line, "", "")
}

fn flow(line: &str) -> String {
    file("", "", line, "")
}

fn end(lines: &str) -> String {
    file("", "", "", lines)
}

/// The file with one line replaced.
fn with(old: &str, new: &str) -> String {
    let text = file("", "", "", "");
    assert!(text.contains(old), "{old}");
    text.replacen(old, new, 1)
}

/// The file with an XCP flow that lies.
fn lies(table: &str) -> String {
    with("\"reno\"", &format!("\"xcp\"\nlies = {table}"))
}

/// The file with datagrams that lie.
fn udp_lies(table: &str) -> String {
    with("congestion = \"reno\"", &format!("udp = {{ rate = \"5280bit\" }}\nlies = {table}"))
}

fn told(text: &str, overrides: &Overrides) -> String {
    match load(Path::new("my.toml"), text, overrides) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn the_file_these_are_made_from_is_right() {
    load(Path::new("my.toml"), &file("", "", "", ""), &Overrides::none()).unwrap();
}

#[test]
fn bad_files() {
    let cases = [
        ("empty file", String::new()),
        ("syntax: missing quote", with("\"10mbit\"", "\"10mbit")),
        ("syntax: bare quantity", with("\"10mbit\"", "10mbit")),
        ("syntax: twice the same key", link("rate = \"1mbit\"")),
        ("unknown key of the file", top("durration = \"60s\"")),
        ("unknown key of a link", link("bandwith = \"10mbit\"")),
        ("unknown key of a flow", flow("congestoin = \"xcp\"")),
        ("unknown key of a queue", link("queue = { kind = \"red\", maximum = 5 }")),
        ("unknown table", end("[[flows]]\nfrom = \"S\"")),
        ("single brackets", with("[[link]]", "[link]")),
        ("no duration", with("duration = \"60s\"\n", "")),
        ("duration zero", top("duration = \"0s\"")),
        ("duration too long", top("duration = \"4000000000s\"")),
        ("duration a number", top("duration = 60")),
        ("duration negative", top("duration = \"-60s\"")),
        ("seed negative", top("seed = -1")),
        ("seed beyond 64 bits", top("seed = 99999999999999999999999999")),
        ("seed a text", top("seed = \"one\"")),
        ("measure outside the run", top("measure = { from = \"20s\", to = \"90s\" }")),
        ("measure backwards", top("measure = { from = \"20s\", to = \"10s\" }")),
        ("measure begins after the run", top("measure = { from = \"70s\" }")),
        ("measure a list", top("measure = [\"20s\", \"60s\"]")),
        ("sample nonsense", top("sample = \"sometimes\"")),
        ("sample zero", top("sample = \"0s\"")),
        ("sample too fine", top("sample = \"1us\"")),
        ("rate zero", with("\"10mbit\"", "\"0mbit\"")),
        ("rate negative", with("\"10mbit\"", "\"-10mbit\"")),
        ("rate negative number", with("\"10mbit\"", "-10")),
        ("rate without unit", with("\"10mbit\"", "\"10\"")),
        ("rate a number", with("\"10mbit\"", "10_000_000")),
        ("rate unknown unit", with("\"10mbit\"", "\"10Mb\"")),
        ("rate above 1 TB/s", with("\"10mbit\"", "\"9tbit\"")),
        ("rate absent", with("rate = \"10mbit\"\n", "")),
        ("rate a float that is no number", with("\"10mbit\"", "nan")),
        ("delay negative", with("\"10ms\"", "\"-10ms\"")),
        ("delay in a unit of rate", with("\"10ms\"", "\"10mbit\"")),
        ("between one node", with("[\"S\", \"D\"]", "[\"S\"]")),
        ("between itself", with("[\"S\", \"D\"]", "[\"S\", \"S\"]")),
        ("between a text", with("[\"S\", \"D\"]", "\"S-D\"")),
        ("name with a dot", link("name = \"a.b\"")),
        ("name that is a formula", link("name = \"=cmd|' /C calc'!A0\"")),
        ("name of a flow that becomes a formula", flow("name = \"web;@SUM(A1)\"")),
        ("node that is a formula", with("[\"S\", \"D\"]", "[\"-S\", \"D\"]")),
        ("name empty", link("name = \"\"")),
        ("name of a key", link("name = \"queue\"")),
        (
            "two links without names",
            end("[[link]]\nbetween = [\"D\", \"S\"]\nrate = \"1mbit\"\ndelay = \"0s\""),
        ),
        (
            "two links of one name",
            end("[[link]]\nname = \"S-D\"\nbetween = [\"D\", \"S\"]\nrate = \"1mbit\"\ndelay \
                    = \"0s\""),
        ),
        ("limit zero", link("queue = { limit = 0 }")),
        ("limit zero packets", link("queue = { limit = \"0p\" }")),
        ("limit zero bdp", link("queue = { limit = \"0.0bdp\" }")),
        ("limit holds no packet", link("queue = { limit = \"1000b\" }")),
        ("limit unknown unit", link("queue = { limit = \"2bpd\" }")),
        ("limit a fraction of a packet", link("queue = { limit = 1.5 }")),
        ("limit beyond all", link("queue = { limit = \"99999999999999999bdp\" }")),
        ("queue of unknown kind", link("queue = \"droptail\"")),
        ("queue a number", link("queue = 100")),
        ("law unknown", link("queue = { kind = \"xcp\", law = \"xpc\" }")),
        ("law far from any", link("queue = { kind = \"xcp\", law = \"bbr\" }")),
        (
            "law out of range",
            link("queue = { kind = \"xcp\", law = { alpha = -0.4, gamma = 1.5 } }"),
        ),
        (
            "others counted twice",
            link("queue = { kind = \"xcp\", law = { capacity-for-xcp = \"minus-other\" } }"),
        ),
        (
            "others counted twice after all",
            link("queue = { kind = \"xcp\", law = { preset = \"xcp-ir\", input = \"all\" } }"),
        ),
        (
            "spare bandwidth by ids that nobody asks for",
            link("queue = { kind = \"xcp\", law = { spare = \"limited\" } }"),
        ),
        (
            "intervals out of order",
            link(
                "queue = { kind = \"xcp\", law = { min-interval = \"20ms\", max-interval = \"10ms\" } }",
            ),
        ),
        (
            "an interval shorter than the shortest",
            link("queue = { kind = \"xcp\", law = { max-interval = \"10us\" } }"),
        ),
        (
            "an interval that no RTT can have",
            link("queue = { kind = \"xcp\", law = { max-interval = \"4399s\" } }"),
        ),
        (
            "an interval of nothing",
            link("queue = { kind = \"xcp\", law = { min-interval = \"0s\" } }"),
        ),
        (
            "laws that change out of order",
            link(
                "queue = { kind = \"xcp\", law-changes = [{ at = \"2s\", law = \"xcp\" }, { at = \"1s\", law = \"max-rtt\" }] }",
            ),
        ),
        (
            "a change without a law",
            link("queue = { kind = \"xcp\", law-changes = [{ at = \"2s\" }] }"),
        ),
        ("target negative", link("queue = { kind = \"xcp\", law = { target = -5 } }")),
        (
            "target in an unknown unit",
            link("queue = { kind = \"xcp\", law = { target = \"5 fortnights\" } }"),
        ),
        ("target a fraction", link("queue = { kind = \"xcp\", law = { target = 1.5 } }")),
        (
            "target beyond the limit",
            link("queue = { kind = \"xcp\", limit = 100, law = { target = \"101p\" } }"),
        ),
        ("others in an unknown way", link("queue = { kind = \"xcp\", others = \"priority\" }")),
        ("share of everything", link("queue = { kind = \"xcp\", others = \"fair\", share = 1 }")),
        ("framing negative", link("framing = -1")),
        ("a rate that becomes nothing", link("rate-changes = [[\"1s\", \"0bit\"]]")),
        ("a delay that is a rate", link("delay-changes = [[\"1s\", \"1mbit\"]]")),
        ("delays without a time", link("delay-changes = [\"20ms\"]")),
        ("rates out of order", link("rate-changes = [[\"2s\", \"1mbit\"], [\"1s\", \"2mbit\"]]")),
        (
            "a medium whose rate changes",
            link("medium = \"hub\"\nrate-changes = [[\"1s\", \"2mbit\"]]"),
        ),
        ("medium without a name", link("medium = \"\"")),
        ("nobody to yield to", link("queue = { yields = true }")),
        (
            "medium of two rates, there and back",
            link("medium = \"hub\"\nreverse = { rate = \"1mbit\" }"),
        ),
        (
            "medium of two rates",
            file(
                "",
                "medium = \"hub\"",
                "",
                "[[link]]\nbetween = [\"D\", \"X\"]\nrate = \"1mbit\"\ndelay = \"0s\"\nmedium \
                    = \"hub\"",
            ),
        ),
        (
            "red thresholds out of order",
            link("queue = { kind = \"red\", limit = 100, min = 60, max = 30 }"),
        ),
        (
            "red threshold beyond the limit",
            link("queue = { kind = \"red\", limit = 100, max = \"120%\" }"),
        ),
        ("probability above 1", link("loss = 1.5")),
        ("probability in percent", link("loss = \"1%\"")),
        ("probability no number", link("loss = { probability = nan }")),
        ("loss place unknown", link("loss = { probability = 0.1, place = \"before\" }")),
        ("blackout backwards", link("blackout = { from = \"20s\", to = \"10s\" }")),
        ("blackout without end", link("blackout = { from = \"20s\" }")),
        (
            "direction within reverse",
            link("reverse = { loss = { probability = 0.1, direction = \"reverse\" } }"),
        ),
        ("flow from nowhere", with("from = \"S\"", "from = \"X\"")),
        (
            "flow to a slip of the pen",
            with("[\"S\", \"D\"]", "[\"S\", \"Dst\"]").replacen("to = \"D\"", "to = \"Dest\"", 1),
        ),
        (
            "unreachable",
            end("[[link]]\nbetween = [\"X\", \"Y\"]\nrate = \"1mbit\"\ndelay \
                    = \"0s\"\n[[flow]]\nname = \"lost\"\nfrom = \"S\"\nto = \"Y\"\ncongestion \
                    = \"xcp\""),
        ),
        ("via nowhere", flow("via = [\"R\"]")),
        ("from equals to", with("to = \"D\"", "to = \"S\"")),
        ("two flows without names", end(FLOW)),
        (
            "flow named like a member",
            flow("count = 2").replace("congestion", "name = \"f\"\ncongestion")
                + &FLOW.replace("from", "name = \"f-2\"\nfrom"),
        ),
        ("a share in percent", end("[[expect]]\nmetric = \"jain\"\nmin = 95")),
        ("no flow", format!("duration = \"1s\"\n{LINK}")),
        ("count zero", flow("count = 0")),
        ("count beyond all", flow("count = 10_000_000")),
        ("stop before start", flow("start = \"10s\"\nstop = \"5s\"")),
        ("start after the run", flow("start = \"60s\"")),
        ("stagger beyond stop", flow("count = 10\nstagger = \"10s\"\nstop = \"35s\"")),
        ("arrivals zero", flow("arrivals = \"0s\"")),
        ("arrivals and stagger", flow("count = 10\narrivals = \"1s\"\nstagger = \"1s\"")),
        ("arrivals after the run", flow("arrivals = \"100000s\"")),
        ("arrivals after stop", flow("stop = \"1s\"\narrivals = \"100000s\"")),
        ("arrivals beyond all", flow("arrivals = \"10us\"")),
        (
            "single flow named like one that arrives",
            flow("name = \"f\"\narrivals = \"1s\"") + &FLOW.replace("from", "name = \"f-2\"\nfrom"),
        ),
        ("packet too small", flow("packet = 40")),
        ("packet too large", flow("packet = \"64kb\"")),
        ("congestion unknown", with("\"reno\"", "\"newrene\"")),
        ("congestion of the kernel's", with("\"reno\"", "\"bbr\"")),
        ("congestion absent", with("congestion = \"reno\"\n", "")),
        ("recovery unknown", flow("recovery = \"impatient\"")),
        ("paced a text", flow("paced = \"yes\"")),
        ("bytes zero", flow("bytes = 0")),
        (
            "bytes of an unknown distribution",
            flow("bytes = { mean = \"30kb\", distribution = \"parreto\" }"),
        ),
        ("bytes without a mean", flow("bytes = { distribution = \"exponential\" }")),
        ("pareto without a shape", flow("bytes = { mean = \"30kb\", distribution = \"pareto\" }")),
        (
            "pareto of a shape that has no mean",
            flow("bytes = { mean = \"30kb\", distribution = \"pareto\", shape = 1 }"),
        ),
        ("shape of what has none", flow("bytes = { mean = \"30kb\", shape = 1.2, max = \"1mb\" }")),
        (
            "greatest size below the mean",
            flow("bytes = { mean = \"30kb\", distribution = \"exponential\", max = \"10kb\" }"),
        ),
        ("buffer nonsense", flow("receive-buffer = \"lots\"")),
        ("udp and tcp at once", flow("udp = { rate = \"1mbit\" }")),
        ("udp without a rate", with("congestion = \"reno\"", "udp = { pattern = \"poisson\" }")),
        (
            "udp keys of another pattern",
            with("congestion = \"reno\"", "udp = { rate = \"1mbit\", on = \"1s\" }"),
        ),
        (
            "udp steps out of order",
            with(
                "congestion = \"reno\"",
                "udp = { pattern = \"schedule\", steps = [[\"5s\", \"1mbit\"], [\"1s\", \"0bit\"], \"x\"] }",
            ),
        ),
        ("lies of a flow without XCP", flow("lies = { rtt = \"2x\" }")),
        (
            "lies with a classic header",
            with("\"reno\"", "\"xcp\"\nwire = \"classic\"\nlies = { rtt = \"2x\" }"),
        ),
        ("lies of an unknown kind", lies("{ windows = \"0.1x\" }")),
        ("lies that are no table", lies("\"2x\"")),
        ("claims that are bare numbers", lies("{ rtt = 5, window = 10, increases = 10 }")),
        ("claims without a unit", lies("{ rtt = \"5\", window = \"10\", increases = \"10\" }")),
        ("claims of a wrong unit", lies("{ rtt = \"5p\", window = \"5s\", decreases = \"5%\" }")),
        ("claims below zero", lies("{ rtt = \"-2x\", window = -1, decreases = \"-1x\" }")),
        ("claims beyond all", lies("{ rtt = \"2000000000x\", window = \"9999999999999999p\" }")),
        (
            "a window that is kept and moved",
            lies("{ cwnd = 20, decreases = \"0x\", returns = \"1mbit\" }"),
        ),
        (
            "a window that a robust sender keeps",
            with("\"reno\"", "\"xcp-robust\"\nlies = { cwnd = 20 }"),
        ),
        ("a clock that nobody looks at", with("\"reno\"", "\"xcp\"\nlies = { hides = true }")),
        ("a window of nothing that is kept", lies("{ cwnd = 0 }")),
        ("feedback of nothing returned", lies("{ returns = \"0bit\" }")),
        ("a connection that forges addresses", lies("{ forged = true }")),
        ("datagrams that claim half of it", udp_lies("{ rtt = \"65s\" }")),
        ("datagrams with factors", udp_lies("{ rtt = \"10x\", window = \"0.1x\" }")),
        (
            "datagrams that listen",
            udp_lies("{ rtt = \"65s\", window = \"1p\", decreases = \"0x\", cwnd = 5 }"),
        ),
        ("variant without name", end("[[variant]]\nset = { seed = 2 }")),
        ("variants of one name", end("[[variant]]\nname = \"a\"\n[[variant]]\nname = \"a\"")),
        (
            "variant sets what is not there",
            end("[[variant]]\nname = \"a\"\nset = \
                    { \"link.S-X.rate\" = \"1mbit\", \"flow.congetsion\" = \"xcp\", \"sede\" = 3 }"),
        ),
        (
            "variant sets a wrong value",
            end("[[variant]]\nname = \"a\"\nset = \
                    { \"flow.congestion\" = \"cubik\", \"link.S-D.queue.limit\" = \"0p\" }"),
        ),
        (
            "variant sets a member of a group",
            flow("count = 2")
                + "[[variant]]\nname = \"a\"\nset = { \"flow.flow-1.start\" = \"1s\" }",
        ),
        (
            "variant sets no path",
            end("[[variant]]\nname = \"a\"\nset = \
                    { \"flow..start\" = \"1s\", \"seed.x\" = 1, \"flow.start.x\" = 1, \"queue.limit\" = 5 }"),
        ),
        ("variant without an unknown flow", end("[[variant]]\nname = \"a\"\nwithout = \"web\"")),
        ("variant without any flow", end("[[variant]]\nname = \"a\"\nwithout = \"flow\"")),
        (
            "expectation of an unknown link",
            end("[[expect]]\nmetric = \"links.bottleneck.utilisation\"\nmin = 1"),
        ),
        (
            "expectation of an unknown flow",
            end("[[expect]]\nmetric = \"flows.web.goodput\"\nmin = 1"),
        ),
        (
            "expectation of an unknown number",
            end("[[expect]]\nmetric = \"links.S-D.utilization\"\nmin = 1"),
        ),
        (
            "expectation of an unknown statistic",
            end("[[expect]]\nmetric = \"flows.flow.cwnd_average\"\nmin = 1"),
        ),
        ("expectation of an unknown sort", end("[[expect]]\nmetric = \"throughput\"\nmin = 1")),
        (
            "expectation put together in an unknown way",
            end("[[expect]]\nmetric = \"flows.*.goodput.middle\"\nmin = 1"),
        ),
        ("expectation without a bound", end("[[expect]]\nmetric = \"jain\"")),
        ("expectation of nothing", end("[[expect]]\nmetric = \"jain\"\nmin = 1\nmax = 0.5")),
        (
            "expectation after the run",
            end("[[expect]]\nmetric = \"jain\"\nmin = 1\nfrom = \"10s\"\nto = \"70s\""),
        ),
        (
            "expectation of a part of what has no series",
            end("[[expect]]\nmetric = \"flows.flow.timeouts\"\nmax = 0\nfrom = \"10s\"\nto \
                    = \"20s\""),
        ),
        (
            "expectation without samples",
            file(
                "sample = \"off\"",
                "",
                "",
                "[[expect]]\nmetric = \"flows.flow.cwnd_max\"\nmin = 1",
            ),
        ),
        (
            "expectation between samples",
            end("[[expect]]\nmetric = \"jain\"\nmin = 1\nfrom = \"10s\"\nto = \"10.01s\""),
        ),
        (
            "expectation for an unknown variant",
            end(
                "[[expect]]\nmetric = \"jain\"\nmin = 1\nvariant = \"b\"\n[[variant]]\nname = \"a\"",
            ),
        ),
        (
            "comparison with an unknown variant",
            end("[[expect]]\nmetric = \"jain\"\nmin = 1\nthan = \"c\"\n[[variant]]\nname \
                    = \"a\"\n[[variant]]\nname = \"b\""),
        ),
        (
            "comparison with itself",
            end("[[expect]]\nmetric = \"jain\"\nmin = 1\nvariant = \"a\"\nthan \
                    = \"a\"\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\""),
        ),
        (
            "comparison with nothing else",
            end("[[expect]]\nmetric = \"jain\"\nmin = 1\nvariant = \"a\"\nthan = \
                    {}\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\""),
        ),
        (
            "comparison with one and the other",
            end("[[expect]]\nmetric = \"jain\"\nmin = 1\nvariant = [\"a\", \"b\"]\nthan = \
                    { variant = \"a\", preceding = true }\n[[variant]]\nname \
                    = \"a\"\n[[variant]]\nname = \"b\""),
        ),
        (
            "comparison with one that precedes nothing",
            end("[[expect]]\nmetric = \"jain\"\nmin = 1\nvariant = \"a\"\nthan = \
                    { preceding = true }\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\""),
        ),
        (
            "comparison with an unknown number",
            end("[[expect]]\nmetric = \"jain\"\nmin = 1\nvariant = \"a\"\nthan = \
                    { variant = \"b\", metric = \"links.S-D.dropped\" }\n[[variant]]\nname \
                    = \"a\"\n[[variant]]\nname = \"b\""),
        ),
        (
            "comparison with a part after the run",
            end("[[expect]]\nmetric = \"jain\"\nmin = 1\nthan = \
                    { variant = \"b\", from = \"10s\", to = \"70s\" }\n[[variant]]\nname \
                    = \"a\"\n[[variant]]\nname = \"b\""),
        ),
        (
            "comparison with an unknown key",
            end("[[expect]]\nmetric = \"jain\"\nmin = 1\nthan = \
                    { varient = \"b\" }\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\""),
        ),
        (
            "comparison with a number",
            end("[[expect]]\nmetric = \"jain\"\nmin = 1\nthan = 2\n[[variant]]\nname \
                    = \"a\"\n[[variant]]\nname = \"b\""),
        ),
        ("seeds that are none", top("seeds = 0")),
        ("a packet without room for data", flow("packet = 64").replacen("reno", "xcp", 1)),
        (
            "the robust sender in the 2005 format",
            flow("wire = \"classic\"").replacen("reno", "xcp-robust", 1),
        ),
        (
            "a long target with the law robust",
            link("queue = { kind = \"xcp\", law = { preset = \"robust\", target = \"20ms\" } }"),
        ),
        ("seeds twice", top("seeds = [1, 2, 1]")),
        ("seeds in words", top("seeds = \"many\"")),
        ("too many seeds", top("seeds = 1001")),
        (
            "a share of the seeds above one",
            end("[[expect]]\nmetric = \"jain\"\nmin = 1\nseeds = 1.5"),
        ),
        ("no share of the seeds", end("[[expect]]\nmetric = \"jain\"\nmin = 1\nseeds = 0")),
        (
            "a share of the seeds in words",
            end("[[expect]]\nmetric = \"jain\"\nmin = 1\nseeds = \"most\""),
        ),
        (
            "quick with an unknown variant",
            end("[quick]\nvariants = [\"b\"]\n[[variant]]\nname = \"a\""),
        ),
        ("quick with no variant", end("[quick]\nvariants = []\n[[variant]]\nname = \"a\"")),
        ("quick with an unknown key", end("[quick]\nduration = \"5s\"")),
        ("quick sets no table", end("[quick]\nset = \"5s\"")),
        ("quick that is no table", top("quick = true")),
        ("quick sets no path", end("[quick]\nset = { \"a..b\" = 1 }")),
        (
            "several faults at once",
            link("queu = 1")
                .replace("10mbit", "0bit")
                .replace("\"60s\"", "\"60\"")
                .replace("reno", "rena"),
        ),
        (
            "a tab, a wide character and a control character before the fault",
            top("title = \"é\t€\"\nseed = { \"\\u0007\" = 1, \t\"é\" = \"x\" }"),
        ),
    ];
    let mut table = String::new();
    for (name, text) in cases {
        writeln!(table, "──── {name}\n{}", told(&text, &Overrides::none())).unwrap();
    }
    insta::assert_snapshot!(table);
}

#[test]
fn bad_overrides() {
    let cases = [
        ("seed", "x"),
        ("flow.congestion", "cubik"),
        ("queue.alpha", "0.3"),
        ("link.S-D.rate", "10"),
        ("nothing", "1"),
        ("a..b", "1"),
        ("flow", "1"),
        ("flow", "{}"),
        ("flow", "{ count = 5 }"),
        ("link", "{}"),
        ("link.S-D", "{ delay = \"1ms\" }"),
        ("queue", "{}"),
        ("expect.min", "1"),
    ];
    let text = link("queue = \"drop-tail\"");
    let mut table = String::new();
    for (path, value) in cases {
        writeln!(
            table,
            "──── {path} = {value}\n{}",
            told(&text, &Overrides::none().with(path, value))
        )
        .unwrap();
    }
    insta::assert_snapshot!(table);
}

#[test]
fn files_that_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("latin.toml"), b"duration = \"60s\"\ntitle = \"Z\xfcrich\"\n")
        .unwrap();
    let mut table = String::new();
    for name in ["", "absent.toml", "latin.toml"] {
        let error = load_file(&dir.path().join(name), &Overrides::none()).unwrap_err().to_string();
        writeln!(table, "──── {name:?}\n{}", error.replace(dir.path().to_str().unwrap(), "DIR"))
            .unwrap();
    }
    insta::assert_snapshot!(table);
}
