//! What a page is answered: the reader's own errors, refusals of too much work, changed texts, what
//! the command line would have written.

use serde_json::{Value, json};
use xcp_scenario::{CONGESTIONS, Overrides, footprint, load};
use xcp_wasm::Session;

const TEXT: &str = r#"title = "Two"
duration = "2s"
sample = "100ms"

[[link]]
name = "b"
between = ["S", "D"]
rate = "10mbit"
delay = "10ms"
queue = { kind = "xcp", limit = "2bdp" }

[[flow]]
count = 2
from = "S"
to = "D"
congestion = "xcp"

[[variant]]
name = "XCP"

[[variant]]
name = "CUBIC"
set = { "flow.congestion" = "cubic", "link.b.queue.kind" = "drop-tail" }
"#;

fn ask(session: &mut Session, request: &Value) -> Value {
    serde_json::from_str(&session.answer(&request.to_string(), &mut ())).unwrap()
}

fn run(text: &str, most_hops: f64) -> Value {
    json!({ "do": "run", "name": "two.toml", "text": text, "variant": 1, "most_hops": most_hops })
}

#[test]
fn a_text_is_read() {
    let request = json!({ "do": "read", "name": "two.toml", "text": TEXT, "written": ["link.b.queue.limit", "link.b.queue.kind"] });
    let answer = ask(&mut Session::default(), &request);
    assert_eq!(answer["title"], "Two");
    let cubic = &answer["variants"][1];
    assert_eq!(cubic["groups"][0]["congestion"], "cubic");
    assert_eq!(cubic["groups"][0]["count"], 2);
    assert_eq!(cubic["written"]["link.b.queue.limit"], "\"2bdp\"");
    assert_eq!(cubic["written"]["link.b.queue.kind"], "\"drop-tail\"");
    assert_eq!(cubic["links"][0]["rate"], 10_000_000);
    assert_eq!(cubic["main"], 0);
    assert!(answer["laws"].as_array().unwrap().contains(&json!("ixcp")));
}

#[test]
fn a_variant_has_its_law_however_it_was_set() {
    let with = |set: &str| TEXT.replace(r#"name = "XCP""#, &format!("name = \"XCP\"\nset = {set}"));
    let law = |text: &str| {
        let read = json!({ "do": "read", "name": "two.toml", "text": text, "written": [] });
        ask(&mut Session::default(), &read)["variants"][0]["links"][0]["law"].clone()
    };
    assert_eq!(law(TEXT), "xcp");
    let ixcp = with(r#"{ "queue.preset" = "ixcp" }"#);
    assert_eq!(law(&ixcp), "ixcp");
    assert_eq!(law(&with(r#"{ "queue.kind" = "drop-tail" }"#)), Value::Null);
    // What is chosen on the page comes later, and counts.
    let change =
        json!([{ "variant": "XCP", "path": "link.b.queue.law.preset", "value": "\"own-rtt\"" }]);
    let set = json!({ "do": "set", "text": ixcp, "changes": change });
    assert_eq!(law(ask(&mut Session::default(), &set)["text"].as_str().unwrap()), "own-rtt");
}

/// Of several groups, too, none of which is everybody's.
#[test]
fn a_group_has_the_word_of_its_congestion_control() {
    for word in CONGESTIONS {
        let more = "[[flow]]\nname = \"other\"\nfrom = \"S\"\nto = \"D\"\ncongestion = ";
        let text = TEXT.replace(
            "[[variant]]\nname = \"XCP\"",
            &format!("{more}\"{word}\"\n[[variant]]\nname = \"XCP\""),
        );
        let read = json!({ "do": "read", "name": "two.toml", "text": text, "written": [] });
        let answer = ask(&mut Session::default(), &read);
        assert_eq!(answer["variants"][0]["groups"][1]["congestion"], *word, "{answer}");
    }
}

#[test]
fn a_changed_text_is_read_at_once() {
    let mut session = Session::default();
    let change = |value: &str| json!([{ "variant": null, "path": "link.b.rate", "value": value }]);
    let written = ["link.b.rate"];
    let mut set = json!({ "do": "set", "text": TEXT, "changes": change("\"5mbit\"") });
    assert_eq!(ask(&mut session, &set).get("read"), None, "only if it is wanted");
    set["name"] = json!("two.toml");
    set["written"] = json!(written);
    let answer = ask(&mut session, &set);
    assert_eq!(answer["read"]["variants"][0]["links"][0]["rate"], 5_000_000);
    let read =
        json!({ "do": "read", "name": "two.toml", "text": answer["text"], "written": written });
    assert_eq!(answer["read"], ask(&mut session, &read));
    set["changes"] = change("\"5 of them\"");
    let answer = ask(&mut session, &set);
    assert_eq!((&answer["ok"], &answer["read"]["ok"]), (&json!(true), &json!(false)));
    assert!(answer["read"]["problems"][0]["line"].as_u64().unwrap() > 0, "{answer}");
}

#[test]
fn faults_come_with_line_column_and_help() {
    let wrong = TEXT.replace("rate = \"10mbit\"", "rote = \"10mbit\"");
    let answer =
        ask(&mut Session::default(), &json!({ "do": "read", "name": "two.toml", "text": wrong }));
    assert_eq!(answer["ok"], false);
    let problems = answer["problems"].as_array().unwrap();
    let rote = problems.iter().find(|p| p["what"].as_str().unwrap().contains("rote")).unwrap();
    assert_eq!((rote["line"].as_u64(), rote["column"].as_u64()), (Some(8), Some(1)));
    assert_eq!(rote["width"], 4);
    assert!(rote["help"].as_str().unwrap().contains("`rate`"), "{rote}");
}

#[test]
fn too_much_work_and_too_much_memory_are_refused() {
    let mut session = Session::default();
    let answer = ask(&mut session, &run(TEXT, 100.0));
    assert_eq!(answer["ok"], false);
    assert!(answer["hops"].as_f64().unwrap() > 100.0, "{answer}");
    let vast = TEXT.replace("\"2bdp\"", "\"900gb\"").replace("\"10mbit\"", "\"8tbit\"");
    let answer = ask(&mut session, &run(&vast, 1e18));
    assert_eq!(answer["ok"], false);
    assert!(answer["problems"][0]["line"].as_u64().unwrap() > 0, "{answer}");
    let figure = |text: &str| {
        json!({ "do": "figure", "name": "two.toml", "text": text, "quantity": "cwnd_packets",
            "link": null, "most_hops": 1e18 })
    };
    assert_eq!(ask(&mut session, &figure(&vast))["problems"], answer["problems"]);
    // Each by itself has room, together they do not.
    let fine = TEXT.replace("\"100ms\"", "\"800ns\"").replace("\"10mbit\"", "\"1kbit\"");
    let needed = load("two.toml".as_ref(), &fine, &Overrides::none()).unwrap();
    let needed: Vec<u128> = needed.iter().map(|one| footprint(one).bytes >> 20).collect();
    assert!(needed.iter().all(|mb| *mb < 700) && needed.iter().sum::<u128>() > 800, "{needed:?}");
    let answer = ask(&mut session, &figure(&fine));
    assert_eq!(answer["ok"], false);
    assert!(answer["text"].as_str().unwrap().contains("of memory"), "{answer}");
    for request in [json!({ "do": "nothing" }), json!(3), json!({ "do": "csv", "table": "links" })]
    {
        assert_eq!(ask(&mut session, &request)["ok"], false, "{request}");
    }
}

#[test]
fn tables_and_figures_are_those_of_the_command_line() {
    let mut session = Session::default();
    assert_eq!(ask(&mut session, &run(TEXT, 1e9))["ok"], true);
    let answer = ask(&mut session, &json!({ "do": "csv", "table": "links" }));
    let scenarios =
        xcp_scenario::load("two.toml".as_ref(), TEXT, &xcp_scenario::Overrides::none()).unwrap();
    let native = xcp_sim::simulate(&scenarios[1], &mut ()).unwrap();
    let mut csv = Vec::new();
    xcp_report::csv::write(&native, xcp_report::csv::Kind::Links, &mut csv).unwrap();
    assert_eq!(answer["text"].as_str().unwrap().as_bytes(), csv);
    let figure = json!({ "do": "figure", "name": "two.toml", "text": TEXT, "quantity": "queue_mean_packets", "link": "b", "most_hops": 1e9 });
    let svg = ask(&mut session, &figure);
    assert!(svg["text"].as_str().unwrap().starts_with("<svg"), "{svg}");
}

#[test]
fn settings_change_the_text() {
    let changes = json!([
        { "path": "link.b.rate", "value": "\"5mbit\"" },
        { "variant": "CUBIC", "path": "flow.congestion", "value": "\"reno\"" },
    ]);
    let request = json!({ "do": "set", "text": TEXT, "changes": changes });
    let answer = ask(&mut Session::default(), &request);
    let expected = TEXT.replace("10mbit", "5mbit").replace("\"cubic\"", "\"reno\"");
    assert_eq!(answer["text"], expected);
}
