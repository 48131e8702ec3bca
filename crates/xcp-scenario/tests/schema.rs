//! The JSON schema and the reader agree: what loads validates, every key the schema knows the
//! reader takes, and what the reader refuses for its keys, types or single values the schema
//! refuses too.

use std::path::Path;

use serde_json::{Value, json};
use xcp_scenario::{Overrides, load, schema};

/// Validates the part of JSON Schema that our schema uses; an unknown keyword is an error, so that
/// nothing goes unchecked.
fn valid(schema: &Value, root: &Value, value: &Value) -> Result<(), String> {
    let fail = |why: String| Err(format!("{value}: {why}"));
    for (keyword, rule) in schema.as_object().expect("a schema is an object") {
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" => {}
            "$ref" => {
                let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                valid(&root["$defs"][name], root, value)?;
            }
            "type" => {
                let fits = match rule.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "number" => value.is_number(),
                    other => panic!("unknown type {other}"),
                };
                if !fits {
                    return fail(format!("not {rule}"));
                }
            }
            "enum" if !rule.as_array().unwrap().contains(value) => {
                return fail(format!("none of {rule}"));
            }
            "const" if rule != value => return fail(format!("not {rule}")),
            "anyOf" => {
                let errors: Vec<String> = rule
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter_map(|s| valid(s, root, value).err())
                    .collect();
                if errors.len() == rule.as_array().unwrap().len() {
                    return Err(errors.join("; "));
                }
            }
            "pattern" => {
                let pattern = regex_lite::Regex::new(rule.as_str().unwrap()).unwrap();
                if value.as_str().is_some_and(|s| !pattern.is_match(s)) {
                    return fail(format!("does not match {rule}"));
                }
            }
            "maxLength"
                if value
                    .as_str()
                    .is_some_and(|s| s.chars().count() as u64 > rule.as_u64().unwrap()) =>
            {
                return fail("too long".into());
            }
            "minimum" if value.as_f64().is_some_and(|n| n < rule.as_f64().unwrap()) => {
                return fail(format!("below {rule}"));
            }
            "maximum" if value.as_f64().is_some_and(|n| n > rule.as_f64().unwrap()) => {
                return fail(format!("above {rule}"));
            }
            "minItems"
                if value.as_array().is_some_and(|a| (a.len() as u64) < rule.as_u64().unwrap()) =>
            {
                return fail("too few".into());
            }
            "maxItems"
                if value.as_array().is_some_and(|a| a.len() as u64 > rule.as_u64().unwrap()) =>
            {
                return fail("too many".into());
            }
            "items" => {
                value.as_array().into_iter().flatten().try_for_each(|v| valid(rule, root, v))?
            }
            "prefixItems" => {
                let items = value.as_array().into_iter().flatten();
                items.zip(rule.as_array().unwrap()).try_for_each(|(v, s)| valid(s, root, v))?;
            }
            "required" => {
                if let Some(missing) = rule
                    .as_array()
                    .unwrap()
                    .iter()
                    .find(|k| value.get(k.as_str().unwrap()).is_none())
                {
                    return fail(format!("no {missing}"));
                }
            }
            "properties" => {
                for (key, v) in value.as_object().into_iter().flatten() {
                    if let Some(s) = rule.get(key) {
                        valid(s, root, v)?;
                    }
                }
            }
            "additionalProperties" => {
                assert_eq!(rule, &json!(false));
                let known = &schema["properties"];
                if let Some(key) = value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(k, _)| k)
                    .find(|k| known.get(k).is_none())
                {
                    return fail(format!("unknown key {key}"));
                }
            }
            "enum" | "const" | "maxLength" | "minimum" | "exclusiveMinimum" | "maximum"
            | "minItems" | "maxItems" => {}
            other => panic!("unknown keyword {other}"),
        }
    }
    Ok(())
}

fn json_of(text: &str) -> Value {
    toml::from_str(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The scenario files below a directory.
fn files_below(dir: &Path, files: &mut Vec<(String, String)>) {
    for path in std::fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            files_below(&path, files);
        } else if path.extension().is_some_and(|e| e == "toml") {
            files.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
        }
    }
}

fn good_files() -> Vec<(String, String)> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    files_below(&here.join("tests/files/good"), &mut files);
    assert!(files.len() >= 3);
    files_below(&here.join("../../experiments"), &mut files);
    files.sort();
    files
}

#[test]
fn what_loads_validates() {
    let schema = schema();
    for (name, text) in good_files() {
        load(Path::new(&name), &text, &Overrides::none()).unwrap_or_else(|e| panic!("{e}"));
        valid(&schema, &schema, &json_of(&text)).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

/// The keys of every table of the schema, as they occur in the files that load.
#[test]
fn every_key_is_taken_by_the_reader() {
    let schema = schema();
    let mut missing = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for (_, text) in good_files() {
        collect(&schema, &schema, "file", &json_of(&text), &mut seen);
    }
    let tables = schema["$defs"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, s)| (name.as_str(), s))
        .chain([("file", &schema)]);
    for (name, table) in tables {
        for key in table["properties"].as_object().unwrap().keys() {
            if !seen.contains(&(name.to_string(), key.clone())) {
                missing.push(format!("{name}.{key}"));
            }
        }
    }
    assert!(missing.is_empty(), "no good file uses {missing:?}");
}

fn collect(
    schema: &Value,
    root: &Value,
    table: &str,
    value: &Value,
    seen: &mut std::collections::BTreeSet<(String, String)>,
) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.strip_prefix("#/$defs/").unwrap();
        return collect(&root["$defs"][name], root, name, value, seen);
    }
    for s in schema["anyOf"].as_array().into_iter().flatten() {
        if valid(s, root, value).is_ok() {
            collect(s, root, table, value, seen);
        }
    }
    for (key, v) in value.as_object().into_iter().flatten() {
        if let Some(s) = schema["properties"].get(key) {
            seen.insert((table.to_string(), key.clone()));
            collect(s, root, table, v, seen);
        }
    }
    for v in value.as_array().into_iter().flatten() {
        if let Some(s) = schema.get("items") {
            collect(s, root, table, v, seen);
        }
    }
}

#[test]
fn both_refuse_wrong_keys_and_values() {
    let schema = schema();
    let good = "duration = \"60s\"\n[[link]]\nbetween = [\"S\", \"D\"]\nrate = \"10mbit\"\ndelay \
        = \"10ms\"\nqueue = { kind = \"red\", limit = 10 }\nloss = 0.1\n\
                [[flow]]\nfrom = \"S\"\nto = \"D\"\ncongestion = \"xcp\"\nbytes \
        = \"1mb\"\nreceive-buffer = \"unlimited\"\n";
    load(Path::new("x.toml"), good, &Overrides::none()).unwrap();
    valid(&schema, &schema, &json_of(good)).unwrap();
    for (old, new) in [
        ("duration", "durration"),
        ("\"60s\"", "60"),
        ("\"60s\"", "\"60\""),
        ("\"60s\"", "\"60 parsecs\""),
        ("[\"S\", \"D\"]", "[\"S\"]"),
        ("[\"S\", \"D\"]", "[\"S\", \"a.b\"]"),
        ("\"10mbit\"", "\"10\""),
        ("\"10mbit\"", "\"-10mbit\""),
        ("\"10mbit\"", "10"),
        ("\"10mbit\"", "\"10Mbps\""),
        ("limit = 10", "limit = 0"),
        ("limit = 10", "limit = \"33%\""),
        ("limit = 10", "limits = 10"),
        ("\"red\"", "\"rde\""),
        ("0.1", "1.1"),
        ("\"xcp\"", "\"BBR\""),
        ("\"xcp\"", "\"longer_than_kernels_names\""),
        ("\"xcp\"", "\"xcp\"\ncount = 0"),
        ("\"xcp\"", "\"xcp\"\npacket = 63"),
        ("\"xcp\"", "\"xcp\"\npaced = \"yes\""),
        ("\"1mb\"", "\"1\""),
        ("\"unlimited\"", "\"lots\""),
        ("[[link]]", "[[links]]"),
    ] {
        let text = good.replacen(old, new, 1);
        assert_ne!(text, good);
        assert!(
            load(Path::new("x.toml"), &text, &Overrides::none()).is_err(),
            "the reader takes {new}"
        );
        assert!(valid(&schema, &schema, &json_of(&text)).is_err(), "the schema takes {new}");
    }
}
