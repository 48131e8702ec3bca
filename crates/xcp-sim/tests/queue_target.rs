//! A law's queue target reaches the router: with flows that have data to fill it, that much stands
//! in the queue, and no more.

use std::path::Path;

use xcp_model::run::{Quantity, Subject};
use xcp_scenario::{Overrides, load};

const FILE: &str = r#"
duration = "30s"
measure  = { from = "15s" }

[[link]]
name    = "bottleneck"
between = ["S", "D"]
rate    = "20mbit"
delay   = "20ms"
queue   = { kind = "xcp", limit = "4bdp" }

[[flow]]
count      = 4
from       = "S"
to         = "D"
congestion = "xcp"
"#;

#[test]
fn the_queue_settles_at_the_target() {
    // 5 ms at 20 Mbit/s are 12,500 bytes; a packet has 1500.
    for (written, bytes) in
        [("0", 0.0), ("10", 15_000.0), ("5ms", 12_500.0), ("100", 150_000.0), ("1bdp", 100_000.0)]
    {
        let overrides = Overrides::none().with("queue.target", written);
        let scenario = load(Path::new("target.toml"), FILE, &overrides)
            .unwrap_or_else(|e| panic!("{e}"))
            .remove(0);
        let run = xcp_sim::simulate(&scenario, &mut ()).unwrap();
        let link = &run.summary.links["bottleneck"];
        // Two packets for the spacing of arrivals, or what an interval's fluctuation takes.
        let near = |x: f64| (x - bytes).abs() <= 3000.0f64.max(0.1 * bytes);
        assert!(
            near(link.queue_mean * 1500.0),
            "target {written}: {} packets stand",
            link.queue_mean
        );
        assert!(link.utilisation > 0.99, "target {written}: utilisation {}", link.utilisation);
        assert_eq!(link.drops, 0, "target {written}");
        let series =
            run.find(&Subject::Link("bottleneck".into()), Quantity::PersistentQueue).unwrap();
        let persistent = series.values.iter().next_back().unwrap();
        assert!(near(persistent), "target {written}: the router sees {persistent} bytes");
    }
}
