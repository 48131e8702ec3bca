//! Variants, what `--set` changes in them, and what `--quick` leaves of them.

use std::path::Path;

use xcp_model::{Congestion, Discipline, Limit, OverSeeds, Queue, Router, Traffic, UdpPattern};
use xcp_scenario::{Overrides, Plan, load, plan};

use crate::{read, small};

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
        { \"link.S-D.queue\" = \"red\", \"flow.flow.bytes\" = 5000, \"flow.flow.count\" = 2, \
        \"link.loss.probability\" = 0.5 }";
    let text = small("queue = { limit = 50 }", "", variants);
    let all = read(&text);
    assert_eq!(
        all.iter().map(|s| s.variant.as_str()).collect::<Vec<_>>(),
        ["plain", "xcp", "whole"]
    );
    assert!(matches!(
        all[0].links[0].directions[0].queue,
        Queue { limit: Limit::Packets(50), discipline: Discipline::DropTail, .. }
    ));
    let Queue { limit, discipline: Discipline::Xcp(Router { law, .. }), .. } =
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
            Queue { limit: Limit::Packets(1000), discipline: Discipline::Red(_), .. }
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
                Queue { limit: Limit::Packets(7), discipline: Discipline::DropTail, .. }
            ));
        }
    }
}

/// In a file as on the command line: unquoted, a path is tables within tables.
#[test]
fn a_variant_sets_no_flow_as_a_whole() {
    for (set, what) in [
        ("flow = {}", "`flow` is not a setting, but its keys are"),
        ("flow.congestion = \"xcp\"", "`flow` is not a setting, but its keys are"),
        ("\"flow.flow\" = { count = 2 }", "`flow` is a flow, not a setting"),
    ] {
        let text = small("", "", &format!("[[variant]]\nname = \"v\"\nset = {{ {set} }}"));
        let error = load(Path::new("x.toml"), &text, &Overrides::none()).unwrap_err();
        assert_eq!(error.problems()[0].what, what, "{set}");
    }
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

/// A path below what the other direction has of the link changes that, and nothing else of it.
#[test]
fn a_path_into_the_other_direction_begins_with_what_the_link_has() {
    let text = "duration = \"1s\"\n[[link]]\nname = \"l\"\nbetween = [\"S\", \"D\"]\nrate = \
                \"1mbit\"\ndelay = \"1ms\"\nrate-changes = []\nloss = { probability = 0.5, direction \
                = \"forward\" }\nqueue = { kind = \"xcp\", limit = \"100p\", law = { gamma = 0.2 } }\n\
                [[flow]]\nfrom = \"S\"\nto = \"D\"\ncongestion = \"xcp\"\n";
    let overrides = Overrides::none()
        .with("link.l.reverse.queue.limit", "50p")
        .with("link.l.reverse.loss.probability", "0.25");
    let scenarios = load(Path::new("x.toml"), text, &overrides).unwrap_or_else(|e| panic!("{e}"));
    let [there, back] = &scenarios[0].links[0].directions;
    assert_eq!((there.queue.limit, back.queue.limit), (Limit::Packets(100), Limit::Packets(50)));
    assert_eq!(there.queue.discipline, back.queue.discipline);
    // What the link says of one direction only is not the other's.
    assert_eq!((there.losses[0].probability, back.losses[0].probability), (0.5, 0.25));
}
