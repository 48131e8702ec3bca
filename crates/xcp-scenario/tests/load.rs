//! What files turn into.

use std::path::Path;

use xcp_model::packet_hops;
use xcp_model::units::Period;
use xcp_model::{
    Claim, Congestion, Discipline, Lies, Limit, LossPlace, OverSeeds, Queue, Recovery, Red, Router,
    Sampling, Scenario, Traffic, UdpPattern, WireFormat,
};
use xcp_scenario::{Overrides, Plan, QUEUES, load, plan};

const FOUR_FLOWS: &str = include_str!("files/good/four-flows.toml");

fn read(text: &str) -> Vec<Scenario> {
    load(Path::new("test.toml"), text, &Overrides::none()).unwrap_or_else(|e| panic!("{e}"))
}

fn one(text: &str) -> Scenario {
    let mut all = read(text);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[test]
fn the_first_example() {
    let s = one(FOUR_FLOWS);
    assert_eq!(s.title, "Four XCP flows, 10 Mbit/s, 500 ms");
    assert_eq!((s.duration, s.seed), (60_000_000_000, 1));
    assert_eq!(s.measure, Period { from: 20_000_000_000, to: 60_000_000_000 });
    assert_eq!(s.sample, Sampling::Every(100_000_000));
    assert_eq!(s.nodes, ["S", "R", "D"]);
    assert_eq!(s.links[0].name, "S-R");
    let Queue { limit, discipline: Discipline::Xcp(Router { law, .. }) } =
        &s.links[1].directions[0].queue
    else {
        panic!("not an xcp queue")
    };
    // 2 x 10 Mbit/s x 500 ms / 8
    assert_eq!(*limit, Limit::Bytes(1_250_000));
    assert_eq!(
        (law.config.alpha, law.config.beta, law.config.gamma, law.config.pools),
        (0.4, 0.226, 0.1, true)
    );
    assert!(
        matches!(
            s.links[1].directions[1].queue,
            Queue { limit: Limit::Bytes(1_250_000), discipline: Discipline::Xcp(_) }
        ),
        "both directions"
    );
    assert!(matches!(
        s.links[0].directions[0].queue,
        Queue { limit: Limit::Packets(1000), discipline: Discipline::DropTail }
    ));
    let names: Vec<String> = s.flows.iter().map(|f| f.name().to_string()).collect();
    assert_eq!(names, ["flow-1", "flow-2", "flow-3", "flow-4"]);
    assert_eq!(
        (s.flows[0].group.route.as_slice(), s.flows[0].group.return_route.as_slice()),
        (&[0, 2][..], &[3, 1][..])
    );
    let Traffic::Tcp(tcp) = &s.flows[3].traffic() else { panic!("not TCP") };
    assert_eq!(
        (&tcp.congestion, tcp.recovery, tcp.paced, tcp.wire),
        (&Congestion::Xcp, Recovery::Sack, true, WireFormat::Extended)
    );
    assert_eq!((tcp.initial_window, tcp.rto_min, tcp.receive_buffer), (10, 200_000_000, None));
}

const LINK: &str = "[[link]]\nbetween = [\"S\", \"D\"]\nrate = \"10mbit\"\ndelay = \"10ms\"\n";
const FLOW: &str = "[[flow]]\nfrom = \"S\"\nto = \"D\"\ncongestion = \"reno\"\n";

/// A smallest file with lines added to its link, its flow and its end.
fn small(link: &str, flow: &str, end: &str) -> String {
    format!("duration = \"60s\"\n{LINK}{link}\n{FLOW}{flow}\n{end}\n")
}

fn tcp(text: &str) -> xcp_model::Tcp {
    match one(text).flows.remove(0).traffic() {
        Traffic::Tcp(tcp) => tcp,
        Traffic::Udp(_) => panic!("not TCP"),
    }
}

fn udp(pattern: &str) -> UdpPattern {
    let text = small("", "", "").replace("congestion = \"reno\"", &format!("udp = {pattern}"));
    match one(&text).flows.remove(0).traffic() {
        Traffic::Udp(pattern) => pattern,
        Traffic::Tcp(_) => panic!("not UDP"),
    }
}

#[test]
fn a_kernels_congestion_controls_are_for_scenarios_that_run_on_it() {
    let text = small("", "", "").replace("\"reno\"", "\"bbr\"");
    let kernel = |names: &[&str]| {
        Overrides::none().on_kernel(names.iter().map(|n| (*n).to_owned()).collect())
    };
    let told = |overrides: &Overrides| {
        load(Path::new("x.toml"), &text, overrides).unwrap_err().problems()[0].clone()
    };
    let Traffic::Tcp(tcp) =
        load(Path::new("x.toml"), &text, &kernel(&["cubic", "bbr"])).unwrap()[0].flows[0].traffic()
    else {
        panic!()
    };
    assert_eq!(
        (tcp.congestion, tcp.recovery, tcp.paced),
        (Congestion::Named("bbr".into()), Recovery::Sack, false)
    );
    assert_eq!(told(&Overrides::none()).what, "the simulator has no congestion control \"bbr\"");
    let absent = told(&kernel(&["cubic", "bbr2"]));
    assert_eq!(absent.what, "this kernel has no congestion control \"bbr\"");
    assert!(absent.help.unwrap().starts_with("did you mean `bbr2`?"));
}

#[test]
fn congestion_brings_its_recovery() {
    for (name, congestion, recovery, paced) in [
        ("xcp", Congestion::Xcp, Recovery::Sack, true),
        ("reno", Congestion::Reno, Recovery::Reno, false),
        ("newreno", Congestion::Reno, Recovery::NewRenoImpatient, false),
        ("sack", Congestion::Reno, Recovery::Sack, false),
        ("cubic", Congestion::Cubic, Recovery::Sack, false),
    ] {
        let text = small("", "", "").replace("reno", name);
        let tcp = tcp(&text);
        assert_eq!(
            (tcp.congestion, tcp.recovery, tcp.paced),
            (congestion, recovery, paced),
            "{name}"
        );
        assert_eq!(
            self::tcp(&format!("{text}recovery = \"newreno-slow-but-steady\"")).recovery,
            Recovery::NewRenoSlowButSteady
        );
        assert_eq!(self::tcp(&format!("{text}paced = {}", !paced)).paced, !paced);
    }
}

#[test]
fn every_setting_of_tcp() {
    use xcp_model::{LossResponse, RtoPolicy};
    let lines = "loss-response = \"halve\"\nwire = \"classic\"\nbytes = \"10mb\"\nreceive-buffer \
        = \"64kb\"\nsend-buffer = 1000\nwindow-scaling = false\n\
                 delayed-ack = false\nhandshake = false\ninitial-window = 2\nrto-min \
        = \"1s\"\nrto = \"fixed\"\nhonest-window = false";
    let tcp = tcp(&small("", lines, ""));
    assert_eq!(
        (tcp.loss_response, tcp.wire, tcp.bytes),
        (LossResponse::Halve, WireFormat::Classic, Some(10 << 20))
    );
    assert_eq!((tcp.receive_buffer, tcp.send_buffer), (Some(65_536), Some(1000)));
    assert_eq!(
        (tcp.window_scaling, tcp.delayed_ack, tcp.handshake, tcp.honest_window),
        (false, false, false, false)
    );
    assert_eq!(
        (tcp.initial_window, tcp.rto_min, tcp.rto_policy),
        (2, 1_000_000_000, RtoPolicy::Fixed)
    );
    assert_eq!(self::tcp(&small("", "receive-buffer = \"unlimited\"", "")).receive_buffer, None);
}

#[test]
fn patterns_of_datagrams() {
    assert_eq!(udp("{ rate = \"2mbit\" }"), UdpPattern::Constant { rate_bps: 2_000_000 });
    assert_eq!(
        udp("{ pattern = \"poisson\", rate = \"2mbit\" }"),
        UdpPattern::Poisson { rate_bps: 2_000_000 }
    );
    assert_eq!(
        udp(
            "{ pattern = \"on-off\", rate = \"2mbit\", on = \"1s\", off = \"500ms\", random = true }"
        ),
        UdpPattern::OnOff {
            rate_bps: 2_000_000,
            on: 1_000_000_000,
            off: 500_000_000,
            random: true
        }
    );
    assert_eq!(
        udp("{ pattern = \"schedule\", steps = [[\"0s\", \"1mbit\"], [\"10s\", \"0bit\"]] }"),
        UdpPattern::Schedule { steps: vec![(0, 1_000_000), (10_000_000_000, 0)] }
    );
}

fn lies(table: &str, kind: &str) -> Lies {
    let text =
        small("", "", "").replace("congestion = \"reno\"", &format!("{kind}\nlies = {table}"));
    one(&text).flows[0].group.lies.expect("the flow lies")
}

#[test]
fn lies_of_every_kind() {
    let xcp = |table: &str| lies(table, "congestion = \"xcp\"");
    let honest = Lies {
        asks_bps: None,
        link: None,
        rtt: None,
        window: None,
        cwnd: None,
        increases: 1.0,
        decreases: 1.0,
        returns_bps: None,
        forged: false,
    };
    for honest in ["", "lies = {}"] {
        assert_eq!(one(&small("", honest, "")).flows[0].group.lies, None);
    }
    for (written, meant) in [
        ("{ rtt = \"2x\" }", Lies { rtt: Some(Claim::Times(2.0)), ..honest }),
        ("{ rtt = \"65s\" }", Lies { rtt: Some(Claim::Is(65_000_000_000)), ..honest }),
        ("{ rtt = \"0s\" }", Lies { rtt: Some(Claim::Is(0)), ..honest }),
        ("{ window = \"0.001x\" }", Lies { window: Some(Claim::Times(0.001)), ..honest }),
        ("{ window = \"0.25p\" }", Lies { window: Some(Claim::Is(0.25)), ..honest }),
        ("{ window = \"20 packets\" }", Lies { window: Some(Claim::Is(20.0)), ..honest }),
        ("{ cwnd = 83 }", Lies { cwnd: Some(83), ..honest }),
        (
            "{ increases = \"10x\", decreases = \"0x\" }",
            Lies { increases: 10.0, decreases: 0.0, ..honest },
        ),
        ("{ returns = \"100kbit\" }", Lies { returns_bps: Some(100_000), ..honest }),
    ] {
        assert_eq!(xcp(written), meant, "{written}");
    }
    let flood =
        lies("{ rtt = \"65s\", window = \"1p\", forged = true }", "udp = { rate = \"5280bit\" }");
    assert_eq!(
        flood,
        Lies {
            rtt: Some(Claim::Is(65_000_000_000)),
            window: Some(Claim::Is(1.0)),
            forged: true,
            ..honest
        }
    );
}

#[test]
fn flows_lie_in_the_simulator_only() {
    let text = small("", "lies = { window = \"0.1x\" }", "").replace("\"reno\"", "\"xcp\"");
    let problem =
        load(Path::new("x.toml"), &text, &Overrides::none().on_kernel(vec!["cubic".into()]))
            .unwrap_err()
            .problems()[0]
            .clone();
    assert_eq!(problem.what, "flows can lie only in the simulator");
    assert!(problem.help.unwrap().contains("without --on linux"));
    assert!(one(&text).flows[0].group.lies.is_some());
}

#[test]
fn both_directions_unless_reverse() {
    let s = one(&small(
        "queue = { kind = \"xcp\", limit = \"1bdp\" }\nloss = 0.01\nblackout = \
            { from = \"1s\", to = \"2s\" }\nreverse = \
            { rate = \"1mbit\", delay = \"30ms\", loss = 0 }",
        "",
        "",
    ));
    let [there, back] = &s.links[0].directions;
    assert_eq!(
        (there.rate_bps, there.delay, back.rate_bps, back.delay),
        (10_000_000, 10_000_000, 1_000_000, 30_000_000)
    );
    // 40 ms there and back, at each direction's own rate.
    assert!(matches!(
        there.queue,
        Queue { limit: Limit::Bytes(50_000), discipline: Discipline::Xcp(_) }
    ));
    assert!(matches!(
        back.queue,
        Queue { limit: Limit::Bytes(5_000), discipline: Discipline::Xcp(_) }
    ));
    assert_eq!(
        (there.losses.len(), there.losses[0].probability, there.losses[0].place),
        (1, 0.01, LossPlace::AfterQueue)
    );
    assert_eq!(back.losses[0].probability, 0.0);
    assert_eq!((there.blackouts.len(), back.blackouts.len()), (1, 1));
    assert!(matches!(
        one(&small("reverse = { queue = \"drop-tail\" }\nqueue = \"xcp\"", "", "")).links[0]
            .directions[1]
            .queue,
        Queue { discipline: Discipline::DropTail, .. }
    ));
    let s = one(&small(
        "loss = [{ probability = 0.1, direction = \"reverse\", place = \"before-queue\", to = \"5s\" }, { probability = 0.2, direction = \"forward\" }]",
        "",
        "",
    ));
    let [there, back] = &s.links[0].directions;
    assert_eq!((there.losses[0].probability, there.losses[0].period.to), (0.2, s.duration));
    assert_eq!(
        (back.losses[0].place, back.losses[0].period.to),
        (LossPlace::BeforeQueue, 5_000_000_000)
    );
}

/// A word that the language has and the reader does not know would be drop-tail.
#[test]
fn every_kind_of_queue_is_read() {
    for word in QUEUES {
        let s = one(&small(&format!("queue = \"{word}\""), "", ""));
        assert_eq!(s.links[0].directions[0].queue.discipline.name(), *word);
    }
}

#[test]
fn limits_in_every_unit() {
    let limit = |text: &str| match one(&small(&format!("queue = {{ limit = {text} }}"), "", ""))
        .links[0]
        .directions[0]
        .queue
    {
        Queue { limit, discipline: Discipline::DropTail } => limit,
        _ => panic!(),
    };
    assert_eq!(limit("100"), Limit::Packets(100));
    assert_eq!(limit("\"100p\""), Limit::Packets(100));
    assert_eq!(limit("\"64kb\""), Limit::Bytes(65_536));
    assert_eq!(limit("\"2.5bdp\""), Limit::Bytes(62_500));
    assert_eq!(limit("\"0.001bdp\""), Limit::Bytes(1500), "at least a packet");
    // No flow crosses `spare`: twice its own delay.
    let spare = "[[link]]\nname = \"spare\"\nbetween = [\"X\", \"S\"]\nrate = \"8mbit\"\ndelay \
        = \"100ms\"\nqueue = { limit = \"1bdp\" }";
    assert!(matches!(
        one(&small("", "", spare)).links[1].directions[1].queue,
        Queue { limit: Limit::Bytes(200_000), discipline: Discipline::DropTail }
    ));
}

#[test]
fn red_thresholds() {
    let red = |text: &str| match one(&small(
        &format!("queue = {{ kind = \"red\", {text} }}"),
        "packet = 1000",
        "",
    ))
    .links[0]
        .directions[0]
        .queue
    {
        Queue {
            discipline:
                Discipline::Red(Red { min_packets, max_packets, max_probability, weight, gentle }),
            ..
        } => (min_packets, max_packets, max_probability, weight, gentle),
        _ => panic!(),
    };
    assert_eq!(red("limit = 300"), (100.0, 200.0, 0.1, None, true));
    assert_eq!(
        red("limit = 300, min = 5, max = \"15p\", probability = 0.02, weight = 0.002, gentle = \
                false"),
        (5.0, 15.0, 0.02, Some(0.002), false)
    );
    assert_eq!(
        red("limit = \"100000b\", min = \"25%\", max = \"50kb\""),
        (25.0, 51.2, 0.1, None, true)
    );
    // 10 Mbit/s x 20 ms are 25 packets of 1000 bytes.
    assert_eq!(
        red("limit = \"4bdp\", min = \"1bdp\", max = \"3bdp\""),
        (25.0, 75.0, 0.1, None, true)
    );
}

#[test]
fn groups() {
    let s = one(&small(
        "",
        "name = \"g\"\ncount = 3\nstart = \"1s\"\nstagger = \"500ms\"\nstart-jitter \
            = \"10ms\"\nstop = \"9s\"",
        "",
    ));
    let got: Vec<_> = s
        .flows
        .iter()
        .map(|f| {
            (f.name().to_string(), &*f.group.name, f.start, f.group.start_jitter, f.group.stop)
        })
        .collect();
    let stop = Some(9_000_000_000);
    let jitter = 10_000_000;
    assert_eq!(
        got,
        [("g-1", 1_000_000_000), ("g-2", 1_500_000_000), ("g-3", 2_000_000_000)]
            .map(|(name, start)| (name.to_owned(), "g", start, jitter, stop))
    );
    assert_eq!(one(&small("", "", "")).flows[0].name(), "flow".into());
    assert_eq!(one(&small("", "count = 1", "")).flows[0].name(), "flow-1".into());
}

/// Start and size of each member of a group.
fn members(s: &Scenario, group: &str) -> Vec<(u64, Option<u64>)> {
    s.flows.iter().filter(|f| &*f.group.name == group).map(|f| (f.start, f.bytes())).collect()
}

const WEB: &str = "name = \"web\"\nstart = \"1s\"\narrivals = \"15ms\"\nbytes = \
    { mean = \"30kb\", distribution = \"pareto\", shape = 1.2 }";

#[test]
fn arrivals_last_until_the_end_or_the_count() {
    let s = one(&small("", WEB, ""));
    let all = members(&s, "web");
    // 59 s hold 3933 of them; four standard deviations are 251.
    assert!((3680..4190).contains(&all.len()), "{}", all.len());
    assert!(
        all.is_sorted_by_key(|m| m.0)
            && all[0].0 > 1_000_000_000
            && all.last().unwrap().0 < 60_000_000_000
    );
    assert_eq!((s.flows[0].name(), s.flows[9].name()), ("web-1".into(), "web-10".into()));
    // Fewer of them, or a shorter time, are the first of the same flows.
    assert_eq!(members(&one(&small("", &format!("count = 100\n{WEB}"), "")), "web"), all[..100]);
    assert_eq!(members(&one(&small("", &format!("count = 100000\n{WEB}"), "")), "web"), all);
    let stopped = members(&one(&small("", &format!("stop = \"5s\"\n{WEB}"), "")), "web");
    assert_eq!(stopped, all.iter().copied().filter(|m| m.0 < 5_000_000_000).collect::<Vec<_>>());
    // Without count and arrivals a size is drawn too.
    let sole = one(&small("", "bytes = { mean = \"30kb\", distribution = \"exponential\" }", ""));
    assert!(sole.flows[0].bytes().is_some() && sole.flows[0].name() == "flow".into());
    assert_eq!(
        members(&one(&small("", "count = 2\nbytes = { mean = \"30kb\" }", "")), "flow"),
        [(0, Some(30 << 10)); 2]
    );
}

#[test]
fn draws_depend_on_seed_and_name_alone() {
    let read = |seed: u64, web: &str, end: &str| {
        members(&one(&format!("seed = {seed}\n{}", small("", web, end))), "web")
    };
    let drawn = read(5, WEB, "");
    assert_eq!(read(5, WEB, ""), drawn);
    let others = "[[flow]]\nname = \"other\"\nfrom = \"S\"\nto = \"D\"\ncongestion \
        = \"xcp\"\narrivals = \"1ms\"\nbytes = { mean = 9000, distribution = \"exponential\" }";
    assert_eq!(read(5, WEB, others), drawn, "another group changes nothing");
    let other_seed = read(6, WEB, "");
    assert!(
        drawn.iter().zip(&other_seed).all(|(a, b)| a.0 != b.0) && drawn[..50] != other_seed[..50]
    );
    let sizes = |list: &[(u64, Option<u64>)]| list[..1000].iter().map(|m| m.1).collect::<Vec<_>>();
    let slower = read(5, &WEB.replace("15ms", "30ms"), "");
    assert_eq!(sizes(&slower), sizes(&drawn), "arrivals do not change sizes");
    let text = small(
        "",
        WEB,
        "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nset = \
            { \"flow.congestion\" = \"cubic\", \"flow.web.bytes.max\" = \"1gb\" }",
    );
    let variants =
        load(Path::new("x.toml"), &text, &Overrides::none()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        members(&variants[0], "web"),
        members(&variants[1], "web"),
        "variants meet the same flows"
    );
}

#[test]
fn via_forces_a_way() {
    let detour = "[[link]]\nbetween = [\"S\", \"R\"]\nrate = \"1mbit\"\ndelay \
        = \"1s\"\n[[link]]\nbetween = [\"R\", \"D\"]\nrate = \"1mbit\"\ndelay = \"1s\"";
    let s = one(&small("", "", detour));
    assert_eq!(
        (s.flows[0].group.route.as_slice(), s.flows[0].group.return_route.as_slice()),
        (&[0][..], &[1][..])
    );
    let s = one(&small("", "via = [\"R\"]", detour));
    assert_eq!(
        (s.flows[0].group.route.as_slice(), s.flows[0].group.return_route.as_slice()),
        (&[2, 4][..], &[5, 3][..])
    );
}

#[test]
fn sampling() {
    let sample = |top: &str| {
        one(&format!("{top}\n{}", small("", "", "").replacen("duration = \"60s\"", "", 1))).sample
    };
    assert_eq!(sample("duration = \"60s\""), Sampling::Every(100_000_000));
    assert_eq!(sample("duration = \"61s\""), Sampling::Every(100_000_000));
    assert_eq!(sample("duration = \"59s\""), Sampling::Every(50_000_000));
    assert_eq!(sample("duration = \"1us\""), Sampling::Every(1_000_000));
    assert_eq!(sample("duration = \"1s\"\nsample = \"5ms\""), Sampling::Every(5_000_000));
    assert_eq!(sample("duration = \"1s\"\nsample = \"rtt\""), Sampling::PerRtt(20_000_000));
    assert_eq!(sample("duration = \"1s\"\nsample = \"off\""), Sampling::Off);
}

#[test]
fn a_target_is_bytes_by_the_flows_that_cross() {
    let target = |written: &str, packets: &str| {
        let link = format!(
            "queue = {{ kind = \"xcp\", limit = \"8mb\", law = {{ target = {written} }} }}"
        );
        let s = one(&small(&link, packets, ""));
        s.links[0].directions.each_ref().map(|d| match &d.queue {
            Queue { discipline: Discipline::Xcp(Router { law, .. }), .. } => {
                law.config.queue_target_bytes
            }
            _ => panic!("not an xcp queue"),
        })
    };
    // Only the forward direction carries data; the other counts packets of 1500 bytes.
    assert_eq!(target("10", "packet = 500"), [5000, 15_000]);
    assert_eq!(target("\"10p\"", ""), [15_000, 15_000]);
    assert_eq!(target("\"3kb\"", "packet = 500"), [3072, 3072]);
    // 10 Mbit/s: 1250 bytes a millisecond, 20 ms of round trip.
    assert_eq!(target("\"4ms\"", ""), [5000, 5000]);
    assert_eq!(target("\"0.5bdp\"", ""), [12_500, 12_500]);
    assert_eq!(target("0", ""), [0, 0]);
    assert_eq!(target("\"0s\"", ""), [0, 0]);
}

/// From outside, a law's key is for the variants that have such a queue; at least one must.
#[test]
fn a_laws_setting_passes_over_variants_without_a_law() {
    let variants = "[[variant]]\nname = \"xcp\"\n[[variant]]\nname = \"tcp\"\nset = \
        { \"queue.kind\" = \"drop-tail\" }";
    let text = small("queue = \"xcp\"", "", variants);
    let target = Overrides::none().with("queue.target", "5");
    let all = load(Path::new("x.toml"), &text, &target).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        matches!(&all[0].links[0].directions[0].queue, Queue { discipline: Discipline::Xcp(Router { law, .. }), .. } if law.config.queue_target_bytes == 7500)
    );
    assert!(matches!(
        all[1].links[0].directions[0].queue,
        Queue { discipline: Discipline::DropTail, .. }
    ));
    let only =
        |name: &str| load(Path::new("x.toml"), &text, &target.clone().only(&[name.to_owned()]));
    assert_eq!(only("xcp").unwrap(), all[..1]);
    assert!(only("tcp").unwrap_err().to_string().contains("no xcp queue"));
    assert_eq!(xcp_scenario::variant_names(&text), ["xcp", "tcp"]);
}

#[test]
fn variants_and_overrides() {
    let variants = "[[flow]]\nname = \"noise\"\nfrom = \"S\"\nto = \"D\"\nudp = \
        { rate = \"1mbit\" }\n\
        [[variant]]\nname = \"plain\"\n\
        [[variant]]\nname = \"xcp\"\nset = \
        { \"flow.congestion\" = \"xcp\", \"link.S-D.queue.kind\" = \"xcp\", \"queue.limit\" = \"2bdp\", \"queue.alpha\" = 0.2, \
        \"flow.udp.rate\" = \"2mbit\", seed = 9, \"measure.from\" = \"10s\" }\n\
        [[variant]]\nname = \"whole\"\nwithout = \"noise\"\nset = \
        { \"link.S-D.queue\" = \"red\", \"flow.flow.bytes\" = 5000, flow = { flow = { count = 2 } }, \
        \"link.loss.probability\" = 0.5 }";
    let text = small("queue = { limit = 50 }", "", variants);
    let all = read(&text);
    assert_eq!(
        all.iter().map(|s| s.variant.as_str()).collect::<Vec<_>>(),
        ["plain", "xcp", "whole"]
    );
    assert!(matches!(
        all[0].links[0].directions[0].queue,
        Queue { limit: Limit::Packets(50), discipline: Discipline::DropTail }
    ));
    let Queue { limit, discipline: Discipline::Xcp(Router { law, .. }) } =
        &all[1].links[0].directions[0].queue
    else {
        panic!()
    };
    assert_eq!(
        (*limit, law.config.alpha, law.config.beta, all[1].seed, all[1].measure.from),
        (Limit::Bytes(50_000), 0.2, 0.226, 9, 10_000_000_000)
    );
    assert!(
        matches!(&all[1].flows[0].traffic(), Traffic::Tcp(t) if t.congestion == Congestion::Xcp)
    );
    assert_eq!(
        all[1].flows[1].traffic(),
        Traffic::Udp(UdpPattern::Constant { rate_bps: 2_000_000 })
    );
    assert!(
        matches!(
            all[2].links[0].directions[0].queue,
            Queue { limit: Limit::Packets(1000), discipline: Discipline::Red(_) }
        ),
        "a table is replaced whole"
    );
    assert_eq!(
        all[2].flows.iter().map(|f| f.name().to_string()).collect::<Vec<_>>(),
        ["flow-1", "flow-2"]
    );
    assert_eq!(all[2].links[0].directions[1].losses[0].probability, 0.5);

    let overrides = Overrides::none()
        .with("seed", "3")
        .with("link.S-D.rate", "1mbit")
        .with("flow.flow.paced", "true")
        .with("queue.limit", "7");
    for s in load(Path::new("x.toml"), &text, &overrides).unwrap_or_else(|e| panic!("{e}")) {
        assert_eq!(
            (s.seed, s.links[0].directions[0].rate_bps, s.links[0].directions[1].rate_bps),
            (3, 1_000_000, 1_000_000)
        );
        assert!(matches!(&s.flows[0].traffic(), Traffic::Tcp(t) if t.paced));
        if s.variant == "plain" {
            assert!(matches!(
                s.links[0].directions[0].queue,
                Queue { limit: Limit::Packets(7), discipline: Discipline::DropTail }
            ));
        }
    }
}

#[test]
fn expectations_go_to_their_variants() {
    let text = small(
        "",
        "",
        "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n\
         [[expect]]\nmetric = \"jain\"\nmin = 0.9\n\
         [[expect]]\nmetric = \"links.S-D.reverse.drops\"\nmax = 0\nvariant = [\"b\"]\nclaim \
            = \"none dropped\"\nsource = \"a paper\"\nfrom = \"30s\"",
    );
    let all = read(&text);
    assert_eq!((all[0].expectations.len(), all[1].expectations.len()), (1, 2));
    assert_eq!(all[0].expectations[0].claim, "jain");
    let e = &all[1].expectations[1];
    assert_eq!((e.claim.as_str(), e.min, e.max), ("none dropped (a paper)", None, Some(0.0)));
    assert_eq!(e.period, Some(Period { from: 30_000_000_000, to: 60_000_000_000 }));
}

/// Who is compared with whom: one with another, all with one, each with the one before it in the
/// list, a run with itself elsewhere.
#[test]
fn comparisons_find_their_variants() {
    let text = small(
        "",
        "",
        "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n[[variant]]\nname = \"c\"\n\
         [[expect]]\nmetric = \"jain\"\nmin = 1\nvariant = \"b\"\nthan = \"a\"\nclaim = \"one\"\n\
         [[expect]]\nmetric = \"jain\"\nmin = 1\nthan = \"a\"\nclaim = \"all\"\n\
         [[expect]]\nmetric = \"jain\"\nmin = 1\nvariant = [\"c\", \"a\", \"b\"]\nthan = \
            { preceding = true }\nclaim = \"order\"\n\
         [[expect]]\nmetric = \"jain\"\nmin = 1\nvariant = \"c\"\nfrom = \"30s\"\nthan = \
            { to = \"30s\", metric = \"links.S-D.drops\" }\nclaim = \"own\"",
    );
    let pairs: Vec<(String, String, String)> = read(&text)
        .iter()
        .flat_map(|s| {
            s.expectations.iter().map(|e| {
                (e.claim.clone(), s.variant.clone(), e.than.as_ref().unwrap().variant.clone())
            })
        })
        .collect();
    let pairs: Vec<[&str; 3]> =
        pairs.iter().map(|(claim, own, other)| [claim.as_str(), own, other]).collect();
    assert_eq!(
        pairs,
        [
            ["order", "a", "c"],
            ["one", "b", "a"],
            ["all", "b", "a"],
            ["order", "b", "a"],
            ["all", "c", "a"],
            ["own", "c", "c"],
        ]
    );
    let own = read(&text)[2].expectations[1].than.clone().unwrap();
    assert_eq!(
        (own.metric.as_str(), own.period),
        ("links.S-D.drops", Some(Period { from: 0, to: 30_000_000_000 }))
    );
}

/// What `--quick` runs: fewer variants, other settings, and only claims about what is left of the
/// run.
#[test]
fn less_of_it() {
    let body = "duration = \"60s\"\n[[link]]\nbetween = [\"S\", \"D\"]\nrate = \"10mbit\"\ndelay \
        = \"10ms\"\n\
                [[flow]]\nfrom = \"S\"\nto = \"D\"\ncongestion = \"xcp\"\n";
    let text = format!(
        "seed = 5\nseeds = 3\n{body}{}",
        "[quick]\nvariants = [\"b\", \"c\"]\nset = { duration = \"20s\" }\n\
         [[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n[[variant]]\nname = \"c\"\nset = \
            { duration = \"90s\" }\n\
         [[expect]]\nmetric = \"jain\"\nmin = 1\nclaim = \"whole\"\n\
         [[expect]]\nmetric = \"jain\"\nmin = 1\nto = \"20s\"\nclaim = \"early\"\nseeds \
            = \"all\"\n\
         [[expect]]\nmetric = \"jain\"\nmin = 1\nfrom = \"20s\"\nclaim = \"late\"\n\
         [[expect]]\nmetric = \"jain\"\nmin = 1\nto = \"30s\"\nclaim = \"longer\"\n\
         [[expect]]\nmetric = \"jain\"\nmin = 1\nquick = false\nclaim = \"costly\"\n\
         [[expect]]\nmetric = \"jain\"\nmin = 1\nthan = \
            { metric = \"links.S-D.drops\", from = \"30s\" }\nclaim = \"than later\"",
    );
    let path = Path::new("x.toml");
    let whole = load(path, &text, &Overrides::none()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(whole.iter().map(|s| s.expectations.len()).collect::<Vec<_>>(), [6, 6, 6]);
    let quick = load(path, &text, &Overrides::none().quick(true)).unwrap_or_else(|e| panic!("{e}"));
    for (s, variant) in quick.iter().zip(["b", "c"]) {
        assert_eq!(
            (s.variant.as_str(), s.duration),
            (variant, 20_000_000_000),
            "set after the variant"
        );
        assert_eq!(
            s.expectations.iter().map(|e| e.claim.as_str()).collect::<Vec<_>>(),
            ["whole", "early"]
        );
        assert_eq!(s.expectations[1].over_seeds, OverSeeds::All);
    }
    assert_eq!(quick.len(), 2);
    let plan = plan(path, &text).unwrap();
    assert_eq!((plan.seeds, plan.quick.unwrap().seeds), (vec![5, 6, 7], vec![5]));
    assert_eq!(xcp_scenario::plan(path, body).unwrap(), Plan { seeds: vec![1], quick: None });
}

/// What runs cost: four flows fill the narrow link whatever the wide one could take; each packet
/// crosses both, half as many come back.
#[test]
fn cost() {
    let text = |flow: &str| {
        format!(
            "duration = \"60s\"\n[[link]]\nbetween = [\"S\", \"R\"]\nrate = \"100mbit\"\ndelay \
                = \"1ms\"\n\
             [[link]]\nbetween = [\"R\", \"D\"]\nrate = \"12mbit\"\ndelay \
                = \"1ms\"\n[[flow]]\nfrom = \"S\"\nto = \"D\"\n{flow}"
        )
    };
    for (flow, expected) in [
        ("congestion = \"xcp\"\ncount = 4", 60_000.0 * 3.0),
        ("congestion = \"xcp\"\nstart = \"30s\"\ndelayed-ack = false", 30_000.0 * 4.0),
        ("congestion = \"xcp\"\nbytes = 150000", 100.0 * 3.0),
        ("udp = { rate = \"1.2mbit\" }", 6000.0 * 2.0),
        ("udp = { rate = \"24mbit\" }", 60_000.0 * 2.0),
        (
            "udp = { pattern = \"on-off\", rate = \"12mbit\", on = \"1s\", off = \"3s\" }",
            15_000.0 * 2.0,
        ),
        (
            "udp = { pattern = \"schedule\", steps = [[\"0s\", \"0bit\"], [\"45s\", \"12mbit\"]] }",
            15_000.0 * 2.0,
        ),
    ] {
        let hops = packet_hops(&one(&text(flow)));
        assert!((hops / expected - 1.0).abs() < 0.01, "{flow}: {hops}, not {expected}");
    }
}

/// A thousand links in a row and a hundred thousand flows: reading takes no more than a moment (a
/// quadratic step would take minutes).
#[test]
fn large_files() {
    let mut text = "duration = \"1s\"\nsample = \"off\"\n".to_string();
    for i in 0..1000 {
        text += &format!(
            "[[link]]\nbetween = [\"n{i}\", \"n{}\"]\nrate = \"1gbit\"\ndelay = \"1ms\"\nqueue = \
                {{ limit = \"1bdp\" }}\n",
            i + 1
        );
    }
    for i in 0..1000 {
        text += &format!(
            "[[flow]]\nname = \"f{i}\"\ncount = 100\nfrom = \"n{i}\"\nto = \"n{}\"\ncongestion \
                = \"xcp\"\n",
            (i + 7) % 1001
        );
    }
    let s = one(&text);
    assert_eq!((s.links.len(), s.flows.len()), (1000, 100_000));
}

/// What each of a million flows takes beside its group.
#[test]
fn flows_are_small() {
    assert!(size_of::<xcp_model::Flow>() <= 32);
    assert!(size_of::<xcp_model::run::FlowSummary>() <= 112);
}
