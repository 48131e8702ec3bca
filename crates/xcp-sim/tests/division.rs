//! A run divided among processors must come out as one that is not, to the last bit of the last
//! sample.

use std::fmt::Write as _;
use std::path::Path;

use proptest::prelude::*;
use xcp_model::Scenario;
use xcp_scenario::{Overrides, load};
use xcp_sim::partition::Partition;
use xcp_sim::{simulate, simulate_on, simulate_partition};

const MS: u64 = 1_000_000;

fn scenario(text: &str) -> Scenario {
    load(Path::new("test.toml"), text, &Overrides::none())
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
        .remove(0)
}

/// Everything that a run tells, as text: in numbers, not-a-number is not equal to itself.
fn told(run: Result<xcp_model::run::Run, xcp_sim::SimError>) -> String {
    format!("{:?}", run.unwrap_or_else(|e| panic!("{e}")))
}

/// A link's far end, rate, delay, queue, and whether it is lossy (1), on the medium (2) or changes
/// (3).
type AnyLink = (usize, u64, u64, &'static str, u8);
/// A flow's ends, congestion control and other keys.
type AnyFlow = (usize, usize, &'static str, &'static str);

/// A tree of nodes with these links, each from node i + 1 to an earlier one, and two links across.
fn network(links: &[AnyLink], flows: &[AnyFlow], seed: u64) -> String {
    let mut text = format!(
        "title = \"any\"\nduration = \"900ms\"\nseed = {seed}\nsample = \"70ms\"\nmeasure = \
            {{ from = \"200ms\" }}\n"
    );
    let nodes = links.len() + 1;
    let across =
        [(nodes - 1, 25), (nodes / 2, 12)].map(|(far, delay)| (0, far, 10, delay, "drop-tail", 0));
    let tree = links.iter().enumerate().map(|(i, &(to, rate, delay, queue, what))| {
        (to % (i + 1), i + 1, rate, delay, queue, what)
    });
    let mut known = Vec::new();
    for (a, b, rate, delay, queue, what) in tree.chain(across) {
        if a == b || known.contains(&(a, b)) {
            continue;
        }
        known.push((a, b));
        let more = match what {
            1 => {
                "loss = [{ probability = 0.01 }, \
                    { probability = 0.01, place = \"after-queue\" }]\nblackout = \
                    [{ from = \"400ms\", to = \"430ms\" }]\n"
            }
            4 => "reorder = { probability = 0.2, most = \"9ms\" }\n",
            2 => "medium = \"hub\"\nframing = 38\n",
            3 => {
                "rate-changes = [[\"350ms\", \"3mbit\"], [\"600ms\", \"50mbit\"]]\n\
                    delay-changes = [[\"300ms\", \"1ms\"], [\"500ms\", \"40ms\"]]\n"
            }
            _ => "",
        };
        let rate = if what == 2 { 10 } else { rate };
        write!(
            text,
            "[[link]]\nbetween = [\"n{a}\", \"n{b}\"]\nrate = \"{rate}mbit\"\ndelay \
                = \"{delay}ms\"\nqueue = {{ kind = \"{queue}\", limit = 60 }}\n{more}"
        )
        .unwrap();
    }
    for (i, &(from, to, congestion, more)) in flows.iter().enumerate() {
        let (from, to) = (from % nodes, to % nodes);
        let to = if from == to { (to + 1) % nodes } else { to };
        let traffic = if congestion == "udp" {
            "udp = { pattern = \"poisson\", rate = \"2mbit\" }".to_owned()
        } else if congestion == "flood" {
            "packet = 66\nudp = { rate = \"50kbit\" }\nlies = \
                { rtt = \"1s\", window = \"1p\", forged = true }"
                .to_owned()
        } else if congestion == "liar" {
            format!(
                "congestion = \"xcp\"\nlies = \
                    {{ window = \"0.5x\", increases = \"2x\", returns = \"100bit\" }}\n{more}"
            )
        } else {
            format!("congestion = \"{congestion}\"\n{more}")
        };
        writeln!(
            text,
            "[[flow]]\nname = \"f{i}\"\nfrom = \"n{from}\"\nto \
            = \"n{to}\"\nstart-jitter = \"60ms\"\n{traffic}"
        )
        .unwrap();
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_divided_run_is_the_same(
        links in prop::collection::vec(
            (0usize..20, 2u64..60, 0u64..30, prop::sample::select(vec!["drop-tail", "red", "xcp", "xcp\", others = \"fair"]), prop::sample::select(vec![0, 0, 0, 1, 2, 3, 4])),
            2..7
        ),
        flows in prop::collection::vec(
            (0usize..20, 0usize..20, prop::sample::select(vec!["xcp", "xcp", "liar", "sack", "cubic", "newreno", "udp", "flood"]), prop::sample::select(vec![
                "", "count = 3", "stop = \"500ms\"", "bytes = \"200kb\"", "handshake = \
                    false\npaced = false", "delayed-ack = false",
            ])),
            2..6
        ),
        seed in 0u64..1000,
        regions in 2usize..4,
        long in 1u64..20,
    ) {
        let scenario = scenario(&network(&links, &flows, seed));
        let Some(partition) = Partition::at(&scenario, long * MS, regions) else { return Ok(()) };
        prop_assert!(partition.lookahead >= long * MS);
        prop_assert_eq!(told(simulate_partition(&scenario, &partition, &mut ())), told(simulate(&scenario, &mut ())));
    }
}

/// Two clusters joined by one link.
fn dumbbell(delay: &str) -> String {
    format!(
        "title = \"dumbbell\"\nduration = \"100ms\"\n\
         [[link]]\nbetween = [\"a\", \"b\"]\nrate = \"10gbit\"\ndelay = \"10us\"\n\
         [[link]]\nbetween = [\"b\", \"c\"]\nrate = \"1gbit\"\ndelay = \"{delay}\"\nqueue \
            = \"xcp\"\n\
         [[link]]\nbetween = [\"c\", \"d\"]\nrate = \"10gbit\"\ndelay = \"10us\"\n\
         [[flow]]\ncount = 4\nfrom = \"a\"\nto = \"d\"\ncongestion = \"xcp\"\n"
    )
}

#[test]
fn long_links_divide_and_short_ones_do_not() {
    let long = scenario(&dumbbell("20ms"));
    let partition = Partition::for_processors(&long, 2);
    assert_eq!((partition.regions, partition.lookahead), (2, 20 * MS));
    assert_eq!(
        [0, 1, 2, 3].map(|node| partition.region(node) == partition.region(0)),
        [true, true, false, false],
        "what short links join stays together"
    );
    assert_eq!(told(simulate_on(&long, 2, &mut ())), told(simulate(&long, &mut ())));

    assert_eq!(
        Partition::for_processors(&scenario(&dumbbell("20us")), 2).regions,
        1,
        "regions would wait for each other all the time"
    );
    assert_eq!(Partition::for_processors(&long, 1).regions, 1);
    assert_eq!(
        Partition::for_processors(&long, usize::MAX).regions,
        Partition::for_processors(&long, long.nodes.len()).regions,
        "more processors than nodes are no more work to divide for"
    );
}
