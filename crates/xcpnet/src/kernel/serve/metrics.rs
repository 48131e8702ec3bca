//! A look as Prometheus reads it (text format 0.0.4): routers by device, the endpoint, proxies by
//! name. Aggregates only: nothing has a label per connection. What a proxy counts besides is at its
//! own `--metrics`.

use std::fmt::Write as _;

use serde_json::Value;

/// Name, kind, help, unit in which the reading has it, where in the reading.
type Metric = (&'static str, &'static str, &'static str, &'static str);

const ROUTER: [Metric; 8] = [
    ("capacity_bits_per_second", "gauge", "Capacity that XCP may fill.", "/capacity"),
    (
        "input_bits_per_second",
        "gauge",
        "Traffic that was let in during the last control interval.",
        "/input_traffic",
    ),
    ("utilisation_ratio", "gauge", "Input over capacity.", "/utilisation"),
    (
        "persistent_queue_bytes",
        "gauge",
        "Queue that did not drain within an interval.",
        "/persistent_queue",
    ),
    ("queue_bytes", "gauge", "Bytes waiting now.", "/backlog"),
    ("control_interval_seconds", "gauge", "Length of the control interval.", "/control_interval"),
    ("flows_estimated", "gauge", "Estimated number of flows.", "/flows_estimated"),
    ("drops_total", "counter", "Packets dropped by its queue.", "/drops"),
];

const ENDPOINT: [Metric; 4] = [
    ("agreed_total", "counter", "Connections whose ends both speak XCP.", "/counts/agreed"),
    (
        "fallen_peer_total",
        "counter",
        "Connections whose peer does not speak XCP.",
        "/counts/fallen_peer",
    ),
    (
        "fallen_silent_total",
        "counter",
        "Connections whose feedback stopped.",
        "/counts/fallen_silent",
    ),
    ("connections", "gauge", "Connections that it is watching now.", "/connections_in_all"),
];

const PROXY: [Metric; 4] = [
    ("connections", "gauge", "Connections carried now.", "/connections_in_all"),
    ("unreached_total", "counter", "Connections whose server was not reached.", "/unreached"),
    ("wan_capacity_bits_per_second", "gauge", "Capacity of the long link.", "/gateway/capacity"),
    (
        "wan_input_bits_per_second",
        "gauge",
        "Traffic that its router let in during the last control interval.",
        "/gateway/input_traffic",
    ),
];

/// The text.
pub fn text(reading: &Value) -> String {
    let list = |name: &str| reading[name].as_array().map_or(&[][..], Vec::as_slice);
    let mut out = String::new();
    let routers = list("routers").iter().map(|r| (label("dev", &r["dev"]), r)).collect();
    write(&mut out, "xcpnet_router_", &ROUTER, &routers);
    let endpoint = &reading["endpoint"];
    let endpoints =
        if endpoint["enabled"] == true { vec![(String::new(), endpoint)] } else { Vec::new() };
    write(&mut out, "xcpnet_endpoint_", &ENDPOINT, &endpoints);
    let proxies = list("proxies").iter().map(|p| (label("name", &p["name"]), p)).collect();
    write(&mut out, "xcpnet_proxy_", &PROXY, &proxies);
    out
}

fn label(name: &str, value: &Value) -> String {
    let value = value.as_str().unwrap_or_default();
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{{{name}=\"{escaped}\"}}")
}

fn write(out: &mut String, prefix: &str, metrics: &[Metric], things: &Vec<(String, &Value)>) {
    for (name, kind, help, place) in metrics {
        let there: Vec<(&String, f64)> = things
            .iter()
            .filter_map(|(label, thing)| Some((label, thing.pointer(place)?.as_f64()?)))
            .collect();
        if there.is_empty() {
            continue;
        }
        let _ = writeln!(out, "# HELP {prefix}{name} {help}\n# TYPE {prefix}{name} {kind}");
        for (label, value) in there {
            let _ = writeln!(out, "{prefix}{name}{label} {value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_line_is_a_metric_and_labels_are_escaped() {
        let router = json!({ "dev": "a\"b\\c\nd", "capacity": 1e7, "drops": 3 });
        let proxy =
            json!({ "name": "sat", "connections_in_all": 2, "unreached": 0, "gateway": null });
        let reading =
            json!({ "routers": [router], "endpoint": { "enabled": false }, "proxies": [proxy] });
        let text = text(&reading);
        assert!(text.contains("xcpnet_router_drops_total{dev=\"a\\\"b\\\\c\\nd\"} 3\n"), "{text}");
        assert!(text.contains("xcpnet_proxy_connections{name=\"sat\"} 2\n"), "{text}");
        assert!(!text.contains("endpoint") && !text.contains("wan"), "{text}");
        assert!(text.lines().all(|l| l.starts_with("# ") || l.starts_with("xcpnet_")), "{text}");
    }

    #[test]
    fn nothing_seen_is_nothing_said() {
        assert_eq!(text(&json!({ "routers": null, "endpoint": null, "proxies": null })), "");
    }
}
