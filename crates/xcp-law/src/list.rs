//! Lists as people type them, like the values of `--set PATH=V1,V2,...`.

/// At most this many values of one setting.
const MAX_VALUES: i128 = 1_000_000;

/// Splits at the commas that stand outside of brackets, braces and quotes.
///
/// # Errors
/// What is not closed.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let mut parts = Vec::new();
    let mut open: Vec<char> = Vec::new();
    let mut quote = None;
    let mut escaped = false;
    let mut begin = 0;
    for (at, c) in text.char_indices() {
        if let Some(q) = quote {
            // Only double quotes know escapes, as in TOML.
            if escaped {
                escaped = false;
            } else if c == '\\' && q == '"' {
                escaped = true;
            } else if c == q {
                quote = None;
            }
            continue;
        }
        match c {
            // An apostrophe within a word is no quote.
            '"' | '\'' if !open.is_empty() || text[begin..at].trim().is_empty() => quote = Some(c),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ']' | '}' if open.pop() != Some(c) => return Err(format!("`{c}` closes nothing")),
            ',' if open.is_empty() => {
                parts.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    match (quote, open.last()) {
        (Some(q), _) => return Err(format!("a quote is not closed; it lacks `{q}`")),
        (_, Some(c)) => return Err(format!("a bracket is not closed; it lacks `{c}`")),
        _ => parts.push(text[begin..].trim()),
    }
    Ok(parts)
}

/// The values of a setting, ranges of numbers (`0..300:50`) written out.
///
/// # Errors
/// What is typed wrongly.
pub fn values(text: &str) -> Result<Vec<String>, String> {
    let mut values = Vec::new();
    for part in split(text)? {
        if part.is_empty() {
            return Err(if text.trim().is_empty() {
                "it has no value".to_owned()
            } else {
                "a value between two commas is missing".to_owned()
            });
        }
        match range(part)? {
            Some(range) => values.extend(range),
            None => values.push(part.to_owned()),
        }
    }
    distinct(&values)?;
    Ok(values)
}

/// Refuses a list that is empty or has a value twice.
///
/// # Errors
/// Which it is.
pub fn distinct(values: &[String]) -> Result<(), String> {
    if values.is_empty() {
        return Err("it has no value".to_owned());
    }
    let mut seen = std::collections::HashSet::new();
    match values.iter().find(|v| !seen.insert(v.as_str())) {
        Some(twice) => Err(format!("it has {twice} twice")),
        None => Ok(()),
    }
}

/// Numbers from `A..B` or `A..B:STEP`, both ends included, by exact decimal arithmetic; `None` if
/// it is something else. They may have a unit, the same one wherever there is one
/// (`10ms..100ms:10ms`, `1..20mbit`).
fn range(text: &str) -> Result<Option<Vec<String>>, String> {
    let Some((from, rest)) = text.split_once("..") else { return Ok(None) };
    let (to, step) = rest.split_once(':').unwrap_or((rest, "1"));
    let parts = [from, to, step].map(split_unit);
    let [Some(from), Some(to), Some(step)] = parts.map(|(number, _)| decimal(number)) else {
        return Ok(None);
    };
    let mut units = parts.into_iter().map(|(_, unit)| unit).filter(|unit| !unit.is_empty());
    let unit = units.next().unwrap_or("");
    if let Some(other) = units.find(|other| *other != unit) {
        return Err(format!(
            "the range {text} has two units, {unit} and {other}; use the same unit throughout"
        ));
    }
    let scale = from.1.max(to.1).max(step.1);
    let scaled = |(digits, own): (i128, u32)| digits * 10i128.pow(scale - own);
    let (from, to, step) = (scaled(from), scaled(to), scaled(step));
    if step <= 0 || from > to {
        return Err(format!(
            "the range {text} is empty; write FROM..TO:STEP with a step above zero and the larger \
             end last"
        ));
    }
    if (to - from) / step >= MAX_VALUES {
        return Err(format!("the range {text} has more than {MAX_VALUES} values"));
    }
    let show = |n: i128| {
        let sign = if n < 0 { "-" } else { "" };
        let one = 10u128.pow(scale);
        let (whole, part) = (n.unsigned_abs() / one, n.unsigned_abs() % one);
        let digits = format!("{part:0width$}", width = scale as usize);
        let digits = digits.trim_end_matches('0');
        let point = if digits.is_empty() { "" } else { "." };
        format!("{sign}{whole}{point}{digits}{unit}")
    };
    Ok(Some((0..=(to - from) / step).map(|i| show(from + i * step)).collect()))
}

/// A number and the unit behind it.
fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let number = text.trim_end_matches(|c: char| c.is_alphabetic());
    (number, &text[number.len()..])
}

/// A decimal number as digits and how many of them stand behind the point.
fn decimal(text: &str) -> Option<(i128, u32)> {
    let text = text.trim();
    let (sign, number) = text.strip_prefix('-').map_or((1, text), |n| (-1, n));
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let plain = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty()
        || !plain(whole)
        || !plain(part)
        || number.ends_with('.')
        || whole.len() + part.len() > 15
    {
        return None;
    }
    Some((sign * format!("{whole}{part}").parse::<i128>().ok()?, part.len() as u32))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_split_at_the_outermost_commas() {
        for (text, expected) in [
            ("0,150,300", &["0", "150", "300"][..]),
            ("5", &["5"]),
            (" a , b ", &["a", "b"]),
            (
                r#"{ kind = "red", limit = "1bdp" },drop-tail"#,
                &[r#"{ kind = "red", limit = "1bdp" }"#, "drop-tail"],
            ),
            (r#"["a","b"],["c"]"#, &[r#"["a","b"]"#, r#"["c"]"#]),
            (r#""a,b",'c,d'"#, &[r#""a,b""#, "'c,d'"]),
            (r#""a\",b",c"#, &[r#""a\",b""#, "c"]),
            ("it's,that's", &["it's", "that's"]),
            ("0..6:2", &["0", "2", "4", "6"]),
            ("1..3,9", &["1", "2", "3", "9"]),
            ("0.1..0.5:0.1", &["0.1", "0.2", "0.3", "0.4", "0.5"]),
            ("-1..0.5:0.75", &["-1", "-0.25", "0.5"]),
            ("10ms..30ms:10ms", &["10ms", "20ms", "30ms"]),
            ("1..2mbit:0.5", &["1mbit", "1.5mbit", "2mbit"]),
            ("a..b", &["a..b"]),
        ] {
            assert_eq!(values(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn wrong_lists_say_why() {
        for (text, word) in [
            ("", "no value"),
            ("1,,2", "missing"),
            ("1,", "missing"),
            ("1,2,1", "1 twice"),
            ("[1,2", "lacks `]`"),
            ("1]", "closes nothing"),
            ("\"a", "lacks `\"`"),
            ("3..1", "is empty"),
            ("1ms..2s", "two units, ms and s"),
            ("0..1:0", "is empty"),
            ("0..10000000", "more than"),
        ] {
            let error = values(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    proptest! {
        /// Joined with commas, values without commas come back, and brackets keep theirs.
        #[test]
        fn what_is_joined_is_split(parts in prop::collection::vec("[a-z0-9]{1,5}|\\[[a-z],[a-z]\\]|\"[a-z,]{0,4}\"", 1..6)) {
            let text = parts.join(",");
            prop_assert_eq!(split(&text).unwrap(), parts);
        }

        #[test]
        fn no_text_breaks_it(text in ".{0,40}") {
            let _ = values(&text);
        }
    }
}
