//! The file's JSON schema and the tables of its documentation, both made from `spec`, the table
//! the reader itself works by.

use serde_json::{Value, json};

use crate::plan::MAX_SEEDS;
use crate::spec::{ALL, CONGESTIONS, FILE, Key, Kind, Spec};
use xcp_law::quantity::{MAX_BYTES, MAX_PACKETS};

const NUMBER: &str = r"^\s*[0-9][0-9_]*(\.[0-9][0-9_]*)?\s*";
/// What the kernel may call a congestion control: TCP_CA_NAME_MAX is 16, with the zero at the end.
const KERNEL_NAME: &str = "^[a-z0-9_-]{1,15}$";
const NAME: &str = r#"^[^."*\u0000-\u001f\u007f]+$"#;

fn pattern(units: &str) -> String {
    format!("{NUMBER}({units})\\s*$")
}

/// "10Mbps" is neither: the reader asks which of bits and bytes it means.
fn rate_pattern() -> String {
    pattern("([kKmMgGtT][iI]?)?[bB][iI][tT](/[sS])?|([kmgt]i?)?bps")
}

fn time_pattern() -> String {
    pattern("ns|us|µs|μs|ms|s|m|min|h")
}

const SIZE_UNITS: &str = "[bB]|[kKmMgGtT]([iI]?[bB])?";

/// JSON schema (draft 2020-12) of the scenario file, for editors and other tools. It says what each
/// key takes; what keys mean together (that a flow's nodes exist, that periods lie within the run)
/// only [`load`](crate::load) can tell.
#[must_use]
pub fn schema() -> Value {
    let mut root = object(&FILE);
    let definitions: serde_json::Map<String, Value> =
        ALL[1..].iter().map(|spec| (spec.name.into(), object(spec))).collect();
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("xcpnet scenario");
    root["$defs"] = Value::Object(definitions);
    root
}

fn object(spec: &Spec) -> Value {
    let properties: serde_json::Map<String, Value> =
        spec.keys.iter().map(|key| (key.name.into(), property(key))).collect();
    // What a variant's settings may still add cannot be required of the file itself.
    let required: Vec<&str> = spec
        .keys
        .iter()
        .filter(|k| k.required() && k.name != "congestion")
        .map(|k| k.name)
        .collect();
    json!({ "type": "object", "description": spec.doc, "properties": properties, "required": required, "additionalProperties": false })
}

fn property(key: &Key) -> Value {
    let mut value = kind(key.kind);
    let default = match key.default {
        "required" => String::new(),
        default => format!(" Default: {default}."),
    };
    value["description"] = json!(format!("{}{default}", key.doc));
    value
}

fn reference(spec: &Spec) -> Value {
    json!({ "$ref": format!("#/$defs/{}", spec.name) })
}

/// From when which value of this form holds.
fn steps(value: String) -> Value {
    let cells = [time_pattern(), value].map(|form| json!({ "type": "string", "pattern": form }));
    let row = json!({ "type": "array", "prefixItems": cells, "minItems": 2, "maxItems": 2 });
    json!({ "type": "array", "items": row })
}

/// The same, or the name of a trace.
fn steps_or_trace(value: String) -> Value {
    json!({ "anyOf": [steps(value), { "type": "string" }] })
}

fn kind(kind: Kind) -> Value {
    let text = |pattern: String| json!({ "type": "string", "pattern": pattern });
    let name = || json!({ "type": "string", "pattern": NAME, "maxLength": 100 });
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Name => name(),
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Rate => text(rate_pattern()),
        Kind::Time | Kind::Length => text(time_pattern()),
        Kind::Size { min, max } => {
            json!({ "anyOf": [{ "type": "integer", "minimum": min, "maximum": max }, text(pattern(SIZE_UNITS))] })
        }
        Kind::Buffer { min } => {
            json!({ "anyOf": [{ "type": "integer", "minimum": min, "maximum": MAX_BYTES }, { "const": "unlimited" }, text(pattern(SIZE_UNITS))] })
        }
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Number { min, .. } if min == f64::MIN => json!({ "type": "number" }),
        Kind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::Congestion => {
            json!({ "anyOf": [{ "enum": CONGESTIONS }, { "type": "string", "pattern": KERNEL_NAME }] })
        }
        Kind::Limit | Kind::Threshold => {
            let percent = if matches!(kind, Kind::Threshold) { "|%" } else { "" };
            let units = format!("[pP]|[pP]ackets?|[bB][dD][pP]{percent}|{SIZE_UNITS}");
            json!({ "anyOf": [{ "type": "integer", "minimum": 1, "maximum": MAX_PACKETS }, text(pattern(&units))] })
        }
        Kind::Standing => {
            let units = format!("[pP]|[pP]ackets?|[bB][dD][pP]|{SIZE_UNITS}|ns|us|µs|μs|ms|s");
            json!({ "anyOf": [{ "type": "integer", "minimum": 0, "maximum": MAX_PACKETS }, text(pattern(&units))] })
        }
        Kind::ClaimedTime => text(pattern("ns|us|µs|μs|ms|s|m|min|h|x")),
        Kind::ClaimedWindow => text(pattern("x|[pP]|[pP]ackets?")),
        Kind::Factor => text(pattern("x")),
        Kind::Sample => json!({ "anyOf": [{ "enum": ["rtt", "off"] }, text(time_pattern())] }),
        Kind::Pair => json!({ "type": "array", "items": name(), "minItems": 2, "maxItems": 2 }),
        Kind::Names => json!({ "type": "array", "items": name() }),
        Kind::NameOrNames => json!({ "anyOf": [name(), { "type": "array", "items": name() }] }),
        Kind::RateSteps => steps(rate_pattern()),
        Kind::RateChanges => steps_or_trace(rate_pattern()),
        Kind::DelayChanges => steps_or_trace(time_pattern()),
        Kind::Paths => json!({ "type": "object" }),
        Kind::Seeds => {
            let seed = json!({ "type": "integer", "minimum": 0, "maximum": i64::MAX });
            json!({ "anyOf": [{ "type": "integer", "minimum": 1, "maximum": MAX_SEEDS }, { "type": "array", "items": seed, "minItems": 1 }] })
        }
        Kind::OverSeeds => {
            json!({ "anyOf": [{ "enum": ["median", "all"] }, { "type": "number", "exclusiveMinimum": 0, "maximum": 1 }] })
        }
        Kind::Table(spec) => reference(spec),
        Kind::Tables(spec) => json!({ "type": "array", "items": reference(spec) }),
        Kind::Short { short, table } => {
            json!({ "anyOf": [short_form(table, short), reference(table)] })
        }
        Kind::ShortList { short, table } => {
            let mut one = vec![reference(table)];
            if !short.is_empty() {
                one.push(short_form(table, short));
            }
            let mut any = one.clone();
            any.push(json!({ "type": "array", "items": { "anyOf": one } }));
            json!({ "anyOf": any })
        }
    }
}

fn short_form(table: &Spec, short: &str) -> Value {
    table.key(short).map_or_else(|| json!({}), |key| kind(key.kind))
}

/// The reference tables of `docs/scenario.md`: for each table of the file its name and its keys as
/// a Markdown table.
#[must_use]
pub fn reference_tables() -> Vec<(&'static str, String)> {
    let row = |key: &Key| {
        let default = if key.required() { "**required**" } else { key.default };
        let example =
            if key.example.is_empty() { String::new() } else { format!("`{}`", key.example) };
        format!(
            "| `{}` | {} | {} | {} | {} |",
            key.name,
            takes(key.kind),
            default,
            example,
            key.doc.replace('|', "\\|")
        )
    };
    let table = |spec: &'static Spec| {
        let rows: Vec<String> = spec.keys.iter().map(row).collect();
        let text = format!(
            "{}\n\n| key | takes | default | example | meaning |\n|---|---|---|---|---|\n{}\n",
            spec.doc,
            rows.join("\n")
        );
        (spec.name, text)
    };
    ALL.iter().map(|spec| table(spec)).collect()
}

/// What a key takes, in a few words.
fn takes(kind: Kind) -> String {
    match kind {
        Kind::Text => "text".into(),
        Kind::Name => "name".into(),
        Kind::Bool => "`true`, `false`".into(),
        Kind::Rate => "rate above 0, at most 8tbit".into(),
        Kind::Time => "time".into(),
        Kind::Length => "time above 0".into(),
        Kind::Size { min, max: MAX_BYTES } => format!("size from {min} byte"),
        Kind::Size { min, max } => format!("size, {min} to {max} bytes"),
        Kind::Buffer { .. } => "size or `\"unlimited\"`".into(),
        Kind::Integer { min, max } if max == i64::MAX as u64 => format!("whole number from {min}"),
        Kind::Integer { min, max } => format!("whole number, {min} to {max}"),
        Kind::Number { min, .. } if min == f64::MIN => "number".into(),
        Kind::Number { min, max } => format!("number, {min} to {max}"),
        Kind::Choice(words) => {
            words.iter().map(|w| format!("`\"{w}\"`")).collect::<Vec<_>>().join(", ")
        }
        Kind::Congestion => {
            format!("{}; the kernel's with `--on linux`", takes(Kind::Choice(CONGESTIONS)))
        }
        Kind::Limit => "amount above 0".into(),
        Kind::Threshold => "amount or percent, above 0".into(),
        Kind::Standing => "amount, or time".into(),
        Kind::ClaimedTime => "time or factor".into(),
        Kind::ClaimedWindow => "packets or factor".into(),
        Kind::Factor => "factor".into(),
        Kind::Sample => "time, `\"rtt\"`, `\"off\"`".into(),
        Kind::Pair => "two names".into(),
        Kind::Names => "list of names".into(),
        Kind::NameOrNames => "name or list of names".into(),
        Kind::RateSteps => "list of `[time, rate]`".into(),
        Kind::RateChanges => "list of `[time, rate]` or trace".into(),
        Kind::DelayChanges => "list of `[time, time]` or trace".into(),
        Kind::Paths => "table of paths and values".into(),
        Kind::Seeds => format!("whole number, 1 to {MAX_SEEDS}, or list of seeds"),
        Kind::OverSeeds => "`\"median\"`, `\"all\"`, or number above 0, at most 1".into(),
        Kind::Table(spec) => format!("table [`{0}`](#{0})", spec.name),
        Kind::Tables(spec) => format!("tables [`[[{0}]]`](#{0})", spec.name),
        Kind::Short { short, table } => format!("table [`{0}`](#{0}) or its `{short}`", table.name),
        Kind::ShortList { short: "", table } => format!("table(s) [`{0}`](#{0})", table.name),
        Kind::ShortList { short, table } => {
            format!("table(s) [`{0}`](#{0}) or its `{short}`", table.name)
        }
    }
}
