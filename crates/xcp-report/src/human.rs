//! Numbers as people read them: three or four significant digits and a unit. Exact values are for
//! JSON and CSV.

pub use xcp_law::text::plural;
use xcp_model::run::Run;
use xcp_model::units::Nanos;

/// Three significant digits without trailing noise: `0.8`, `12`, `2.38`, `1234`. Nothing below a
/// thousandth is told from zero.
#[must_use]
pub fn number(x: f64) -> String {
    let a = x.abs();
    let digits = match a {
        _ if !x.is_finite() => return "–".to_owned(),
        _ if a < 0.0005 => return "0".to_owned(),
        _ if a < 0.9995 => 3,
        _ if a < 9.995 => 2,
        _ if a < 99.95 => 1,
        _ => 0,
    };
    let text = format!("{x:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Three significant digits, zeros and all, for columns: `0.800`, `2.30`, `12.0`, `1234`.
pub(crate) fn fixed(x: f64) -> String {
    let digits = match x.abs() {
        a if !a.is_finite() => return "–".to_owned(),
        a if a < 9.995 => 2,
        a if a < 99.95 => 1,
        _ => 0,
    };
    format!("{x:.digits$}")
}

/// [`rate`] for columns: `2.30 Mbit/s`.
#[must_use]
pub fn rate_cell(bps: f64) -> String {
    cell(bps, bit_units(bps))
}

/// [`seconds`] for columns: `1.00 s`.
#[must_use]
pub fn seconds_cell(s: f64) -> String {
    cell(s, time_units(s))
}

fn cell(x: f64, (divisor, unit): (f64, &str)) -> String {
    if x.is_finite() { format!("{} {unit}", fixed(x / divisor)) } else { "–".to_owned() }
}

pub(crate) fn bit_units(bps: f64) -> (f64, &'static str) {
    match bps.abs() {
        a if a >= 999.5e6 => (1e9, "Gbit/s"),
        a if a >= 999.5e3 => (1e6, "Mbit/s"),
        a if a >= 999.5 => (1e3, "kbit/s"),
        _ => (1.0, "bit/s"),
    }
}

pub(crate) fn byte_units(bytes: f64) -> (f64, &'static str) {
    match bytes.abs() {
        a if a >= 999.5e3 => (1e6, "MB"),
        a if a >= 999.5 => (1e3, "kB"),
        _ => (1.0, "bytes"),
    }
}

pub(crate) fn time_units(s: f64) -> (f64, &'static str) {
    match s.abs() {
        0.0 => (1.0, "s"),
        a if a >= 0.9995 => (1.0, "s"),
        a if a >= 0.9995e-3 => (1e-3, "ms"),
        _ => (1e-6, "µs"),
    }
}

/// A rate given in bit/s: `2.38 Mbit/s`.
#[must_use]
pub fn rate(bps: f64) -> String {
    let (divisor, unit) = bit_units(bps);
    if bps.is_finite() { format!("{} {unit}", number(bps / divisor)) } else { "–".to_owned() }
}

/// A time given in seconds: `501 ms`, `1.5 s`.
#[must_use]
pub fn seconds(s: f64) -> String {
    let (divisor, unit) = time_units(s);
    if s.is_finite() { format!("{} {unit}", number(s / divisor)) } else { "–".to_owned() }
}

/// A point or stretch of time: `60 s`, `249 ms`.
#[must_use]
pub fn nanos(t: Nanos) -> String {
    seconds(t as f64 / 1e9)
}

/// A share of one: `99.8 %`.
#[must_use]
pub fn percent(x: f64) -> String {
    if x.is_finite() { format!("{:.1} %", x * 100.0) } else { "–".to_owned() }
}

/// Jain's index: four decimals, so that .9999 is told from .999.
#[must_use]
pub fn index(x: f64) -> String {
    if x.is_finite() { format!("{x:.4}") } else { "–".to_owned() }
}

/// A fairness index, or that there is none.
#[must_use]
pub fn fairness(jain: Option<f64>) -> String {
    index(jain.unwrap_or(f64::NAN))
}

/// A value of an expectation's metric, in the unit its name implies: `links.NAME.idle_time` in
/// seconds, `flows.NAME.goodput_mean` as a rate. Shares and indices keep four decimals, since
/// claims are made about them.
#[must_use]
pub fn metric(name: &str, value: f64) -> String {
    let mut words: Vec<&str> = name.split('.').collect();
    if !value.is_finite() {
        return "not measured".to_owned();
    }
    // `flows.NAME.goodput.max` is a goodput; `flows.NAME.goodput.jain` is not.
    if words.len() > 3
        && matches!(
            words.last(),
            Some(&("mean" | "min" | "max" | "sum" | "median" | "p95" | "p99"))
        )
    {
        words.pop();
    }
    let last = words.last().copied().unwrap_or(name);
    if last.ends_with("_settling") {
        return seconds(value);
    }
    let is = |kinds: &[&str]| {
        kinds.iter().any(|k| last.starts_with(k))
            && !last.ends_with("_cov")
            && !last.ends_with("_growth")
    };
    if is(&["goodput", "phi", "shuffled", "input_traffic"]) {
        rate(value)
    } else if is(&[
        "rtt",
        "control_interval",
        "completed_at",
        "completion_time",
        "idle_time",
        "queue_delay",
    ]) {
        seconds(value)
    } else if is(&["utilisation", "jain", "spread"]) {
        let text = format!("{value:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        number(value)
    }
}

/// What to call a run in a table: its variant, else its title.
#[must_use]
pub fn run_name(run: &Run) -> &str {
    match (run.variant.as_str(), run.title.as_str()) {
        ("", "") => "run",
        ("", title) => title,
        (variant, _) => variant,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        for (x, text) in [
            (0.0, "0"),
            (0.7996, "0.8"),
            (2.384, "2.38"),
            (9.999, "10"),
            (12.0, "12"),
            (99.96, "100"),
            (1234.5, "1234"),
            (-3.256, "-3.26"),
        ] {
            assert_eq!(number(x), text);
        }
        assert_eq!(rate(2_384_000.0), "2.38 Mbit/s");
        assert_eq!(rate(999_900.0), "1 Mbit/s", "rounding carries into the next unit");
        assert_eq!(rate(0.0), "0 bit/s");
        assert_eq!(seconds(0.5014), "501 ms");
        assert_eq!(seconds(0.99996), "1 s");
        assert_eq!(seconds(0.000_012), "12 µs");
        assert_eq!(percent(0.99812), "99.8 %");
        assert_eq!(number(f64::NAN), "–");
    }

    #[test]
    fn metrics_have_the_unit_of_their_name() {
        for (name, value, text) in [
            ("links.b.utilisation", 0.998, "0.998"),
            ("links.b.idle_time", 0.29, "290 ms"),
            ("links.b.queue_mean", 0.8, "0.8"),
            ("flows.f.goodput", 2.4e6, "2.4 Mbit/s"),
            ("flows.f.goodput.max", 2.4e6, "2.4 Mbit/s"),
            ("flows.f.goodput.jain", 0.99991, "0.9999"),
            ("flows.f.goodput_cov", 1.2, "1.2"),
            ("jain", f64::NAN, "not measured"),
        ] {
            assert_eq!(metric(name, value), text, "{name}");
        }
    }
}
