//! One look: what `router show --json`, `endpoint show --json` and `pep show --json` say, in one
//! object, and in words what cannot be seen.

use serde_json::{Value, json};
use xcp_linux::error::is_root;
use xcp_linux::namespace::Namespace;

use crate::failure::Failure;
use crate::kernel::{endpoint, pep, router};

/// Connections of an endpoint or a proxy that a page gets one by one.
const CONNECTIONS: usize = 100;

/// Looks. What cannot be seen is null, and why is in `unseen`.
pub fn read(namespace: &Namespace, at: f64) -> Value {
    let mut unseen = Vec::new();
    let mut part = |name: &str, reading: Result<Value, Failure>| match reading {
        Ok(value) => value,
        Err(why) => {
            unseen.push(format!("{name}: {why}"));
            Value::Null
        }
    };
    let rooted = |look: &dyn Fn() -> Result<Value, Failure>| {
        if is_root() { look() } else { Err(Failure::new("this needs root; start it with sudo")) }
    };
    let routers = part("routers", rooted(&|| router::readings(namespace)));
    let mut endpoint = part("the endpoint", rooted(&endpoint::reading));
    let mut proxies = part("proxies", rooted(&|| pep::readings(namespace)));
    count(&mut endpoint);
    proxies.as_array_mut().into_iter().flatten().for_each(count);
    json!({ "at": at, "routers": routers, "endpoint": endpoint, "proxies": proxies, "unseen": unseen })
}

/// Of very many connections only the first are told one by one; how many there are in any case.
fn count(of: &mut Value) {
    if let Some(connections) = of.get_mut("connections").and_then(Value::as_array_mut) {
        let all = connections.len();
        connections.truncate(CONNECTIONS);
        of["connections_in_all"] = json!(all);
    }
}

/// What is kept of a look for an hour: the numbers that curves are drawn of.
pub fn short(reading: &Value) -> Value {
    let list = |name: &str| reading[name].as_array().map_or(&[][..], Vec::as_slice);
    let routers: serde_json::Map<String, Value> = list("routers")
        .iter()
        .filter_map(|r| {
            Some((r["dev"].as_str()?.to_owned(), json!([r["utilisation"], r["backlog"]])))
        })
        .collect();
    let proxies: serde_json::Map<String, Value> = list("proxies")
        .iter()
        .filter_map(|p| Some((p["name"].as_str()?.to_owned(), p["connections_in_all"].clone())))
        .collect();
    json!({ "at": reading["at"], "routers": routers, "proxies": proxies })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_connections_some_are_told_and_all_counted() {
        let mut proxy = json!({ "name": "a", "connections": vec![json!({}); 1000] });
        count(&mut proxy);
        assert_eq!(proxy["connections_in_all"], 1000);
        assert_eq!(proxy["connections"].as_array().unwrap().len(), CONNECTIONS);
        let router = json!({ "dev": "eth0", "utilisation": 0.5, "backlog": 3000 });
        let short = short(&json!({ "at": 1.5, "routers": [router], "proxies": [proxy] }));
        assert_eq!(
            short,
            json!({ "at": 1.5, "routers": { "eth0": [0.5, 3000] }, "proxies": { "a": 1000 } })
        );
    }

    #[test]
    fn what_is_not_seen_is_no_fault() {
        let nothing = json!({ "at": 0.0, "routers": null, "endpoint": null, "proxies": null });
        assert_eq!(short(&nothing), json!({ "at": 0.0, "routers": {}, "proxies": {} }));
    }
}
