//! Charts as SVG, drawn here and not by a script: they print, need nothing, and stay small. Curves
//! are cut down to what can be seen, with the least and the greatest value of every stretch kept,
//! so that no peak is lost. Colours come from the page's style, with shapes beside them.

use std::fmt::Write as _;

use crate::axis::Axis;
use crate::html::{base64, escape};

/// What is drawn over time.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Curve {
    /// One value at each time; `colour` is its number.
    Line { name: String, colour: usize, points: Vec<(f64, f64)> },
    /// Least, middle and greatest at each time.
    Spread { name: String, colour: usize, points: Vec<(f64, [f64; 3])> },
    /// Not measured, said `of` something: dashed, or with another number dotted.
    Dashed { name: String, of: String, dashes: usize, points: Vec<(f64, f64)> },
}

/// Of a chart, in its own units; the page scales it.
const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 128.0;
const LEFT: f64 = 34.0;
const RIGHT: f64 = 6.0;
const TOP: f64 = 6.0;
const BOTTOM: f64 = 16.0;
/// Stretches of time that a curve is cut down to.
const STRETCHES: usize = 150;

fn x(share: f64) -> f64 {
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

fn y(axis: &Axis, value: f64) -> f64 {
    TOP + (1.0 - axis.share(value)) * (HEIGHT - TOP - BOTTOM)
}

/// What a chart is of: in words, and what a table of its numbers calls them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told<'a> {
    pub described: &'a str,
    pub column: &'a str,
}

/// One chart: curves over the time from 0 to `end` seconds, and which part of it was `measured`.
/// Its points go with it as numbers, for the tables that `assets/papers.js` makes of them.
pub(super) fn over_time(
    curves: &[Curve],
    axis: &Axis,
    end: f64,
    measured: Option<[f64; 2]>,
    told: Told<'_>,
) -> String {
    let mut svg = String::new();
    let column = format!(" data-column=\"{}\"", escape(told.column));
    open(&mut svg, axis, HEIGHT, told.described, &column);
    let time = Axis { low: 0.0, high: end.max(1e-9), unit: crate::axis::Unit::Plain };
    for tick in time.ticks(5) {
        let at = x(time.share(tick));
        let _ = write!(
            svg,
            "<text class=\"t m\" x=\"{at:.0}\" y=\"{:.0}\">{} s</text>",
            HEIGHT - 4.0,
            time.label(tick)
        );
    }
    if let Some([from, to]) = measured.filter(|[from, to]| *from > 0.0 || *to < end) {
        let (from, to) = (x(time.share(from)), x(time.share(to)));
        let _ = write!(
            svg,
            "<rect class=\"w\" x=\"{from:.0}\" y=\"{:.0}\" width=\"{:.0}\" height=\"2\"/>",
            HEIGHT - BOTTOM,
            to - from
        );
    }
    for curve in curves {
        match curve {
            Curve::Line { name, colour, points } => {
                let points = thinned(points, end);
                let _ = write!(
                    svg,
                    "<path class=\"k{}\"{} d=\"{}\"/>",
                    colour % 8,
                    numbers(name, points.iter().map(|(t, v)| [*t, *v])),
                    path(&points, axis, &time)
                );
            }
            Curve::Dashed { name, of, points, dashes } => {
                let points = thinned(points, end);
                let _ = write!(
                    svg,
                    "<path class=\"d d{dashes}\"{} d=\"{}\"/>",
                    numbers(&format!("{name}: {of}"), points.iter().map(|(t, v)| [*t, *v])),
                    path(&points, axis, &time)
                );
            }
            Curve::Spread { name, colour, points } => {
                let part = |i: usize| points.iter().map(|(t, v)| (*t, v[i])).collect::<Vec<_>>();
                let (least, greatest) =
                    (extreme(&part(0), end, f64::min), extreme(&part(2), end, f64::max));
                let outline: Vec<(f64, f64)> =
                    greatest.iter().chain(least.iter().rev()).copied().collect();
                let _ = write!(
                    svg,
                    "<path class=\"f{0}\" d=\"{1}z\"/>",
                    colour % 8,
                    path(&outline, axis, &time)
                );
                // The first of each stretch stands for its middle ones.
                let rows = stretches(points, end).map(|stretch| {
                    let of = |i: usize, fold: fn(f64, f64) -> f64| {
                        let there = stretch.iter().map(|p| p.1[i]).filter(|v| v.is_finite());
                        there.reduce(fold).unwrap_or(f64::NAN)
                    };
                    let (at, middle) = (stretch[0].0, stretch[0].1[1]);
                    [at, of(0, f64::min), middle, of(2, f64::max)]
                });
                let _ = write!(
                    svg,
                    "<path class=\"k{}\"{} d=\"{}\"/>",
                    colour % 8,
                    numbers(name, rows),
                    path(&thinned(&part(1), end), axis, &time)
                );
            }
        }
    }
    svg.push_str("</svg>");
    svg
}

/// A curve's name and its points, as 32-bit floats in base64: a time and one value each, or least,
/// middle and greatest.
fn numbers<const N: usize>(name: &str, rows: impl Iterator<Item = [f64; N]>) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "seven digits are enough for a chart")]
    let bytes = rows.flatten().flat_map(|v| (v as f32).to_le_bytes());
    let values = if N == 4 { " data-values=\"3\"" } else { "" };
    format!(" data-name=\"{}\"{values} data-points=\"{}\"", escape(name), base64(bytes))
}

/// Begins a chart; `data` are attributes of it.
fn open(svg: &mut String, axis: &Axis, height: f64, described: &str, data: &str) {
    let _ = write!(
        svg,
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" role=\"img\" \
            aria-label=\"{}\"{data}>",
        escape(described)
    );
    for tick in axis.ticks(4) {
        let at = y(axis, tick);
        let _ = write!(svg, "<path class=\"g\" d=\"M{LEFT:.0} {at:.1}H{:.0}\"/>", WIDTH - RIGHT);
        let _ = write!(
            svg,
            "<text class=\"t e\" x=\"{:.0}\" y=\"{:.1}\">{}</text>",
            LEFT - 4.0,
            at + 3.0,
            axis.label(tick)
        );
    }
}

/// The least and the greatest value of each stretch in the order in which they come; points as they
/// are if they are few.
fn thinned(points: &[(f64, f64)], end: f64) -> Vec<(f64, f64)> {
    if points.len() <= 2 * STRETCHES {
        return points.to_vec();
    }
    let mut out = Vec::new();
    for part in stretches(points, end) {
        let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let there = || part.iter().filter(|(_, v)| v.is_finite());
        match (there().min_by(by_value), there().max_by(by_value)) {
            (Some(least), Some(greatest)) if least.0 == greatest.0 => out.push(*least),
            (Some(a), Some(b)) => out.extend(if a.0 < b.0 { [*a, *b] } else { [*b, *a] }),
            _ => out.push((part[0].0, f64::NAN)),
        }
    }
    out
}

/// One value of each stretch.
fn extreme(points: &[(f64, f64)], end: f64, of: fn(f64, f64) -> f64) -> Vec<(f64, f64)> {
    let one = |part: &[(f64, f64)]| {
        Some((part[0].0, part.iter().map(|p| p.1).filter(|v| v.is_finite()).reduce(of)?))
    };
    stretches(points, end).filter_map(one).collect()
}

fn stretches<V>(points: &[(f64, V)], end: f64) -> impl Iterator<Item = &[(f64, V)]> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a stretch's number"
    )]
    let number = move |t: f64| (t / end.max(1e-9) * STRETCHES as f64) as usize;
    points.chunk_by(move |a, b| number(a.0) == number(b.0))
}

/// A line through points, broken where there is none. Coordinates in tenths are finer than can be
/// seen.
fn path(points: &[(f64, f64)], axis: &Axis, time: &Axis) -> String {
    let mut out = String::new();
    let mut before: Option<(i64, i64)> = None;
    for (t, v) in points {
        if !v.is_finite() {
            before = None;
            continue;
        }
        #[expect(clippy::cast_possible_truncation, reason = "within the chart")]
        let at = ((x(time.share(*t)) * 10.0).round() as i64, (y(axis, *v) * 10.0).round() as i64);
        let show = |n: i64| {
            if n % 10 == 0 { (n / 10).to_string() } else { format!("{}", n as f64 / 10.0) }
        };
        let _ = match before {
            None => write!(out, "M{} {}", show(at.0), show(at.1)),
            Some(last) if last == at => Ok(()),
            Some(last) => write!(out, "l{} {}", show(at.0 - last.0), show(at.1 - last.1)),
        };
        before = Some(at);
    }
    out
}

/// A number judged in one variant.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Judged {
    /// Name of the variant.
    pub name: String,
    /// The number; the median of seeds.
    pub measured: Option<f64>,
    /// The least and the greatest of the seeds.
    pub range: Option<[f64; 2]>,
    /// Least and greatest value of the claimed band.
    pub band: [Option<f64>; 2],
    /// Whether the number is inside.
    pub inside: bool,
    /// What theories say, in the order of the legend.
    pub theory: Vec<(&'static str, f64)>,
}

/// What is drawn of several variants, as rows of a table.
fn table(list: &[Judged]) -> serde_json::Value {
    let mut theories: Vec<&str> = Vec::new();
    for (name, _) in list.iter().flat_map(|j| &j.theory) {
        if !theories.contains(name) {
            theories.push(name);
        }
    }
    let mut head: Vec<serde_json::Value> =
        ["variant", "measured", "seeds_least", "seeds_greatest", "band_min", "band_max", "inside"]
            .map(Into::into)
            .into();
    head.extend(theories.iter().map(|name| (*name).into()));
    let rows = list.iter().map(|j| {
        let inside = if j.inside { "yes" } else { "no" };
        let [least, greatest] = j.range.map_or([None, None], |r| r.map(Some));
        let mut row =
            serde_json::json!([j.name, j.measured, least, greatest, j.band[0], j.band[1], inside]);
        let said = |name: &&str| j.theory.iter().find(|t| t.0 == *name).map(|t| t.1);
        row.as_array_mut()
            .expect("made above")
            .extend(theories.iter().map(|name| serde_json::json!(said(name))));
        row
    });
    std::iter::once(serde_json::Value::Array(head)).chain(rows).collect()
}

/// The numbers of several variants beside one another, each with its band.
pub(super) fn by_variant(list: &[Judged], axis: &Axis, described: &str) -> String {
    let longest = list.iter().map(|j| j.name.chars().count()).max().unwrap_or(0) as f64;
    let slot = (WIDTH - LEFT - RIGHT) / list.len().max(1) as f64;
    // Names that do not fit beside one another are turned.
    let turned = longest * 5.2 > slot;
    let height = if turned { HEIGHT + (longest * 4.2).min(70.0) } else { HEIGHT };
    let bottom = HEIGHT - BOTTOM;
    let mut svg = String::new();
    let table = format!(" data-table=\"{}\"", escape(&table(list).to_string()));
    open(&mut svg, axis, height, described, &table);
    for (i, one) in list.iter().enumerate() {
        let at = LEFT + (i as f64 + 0.5) * slot;
        let half = (slot * 0.4).min(14.0);
        let (top, low) =
            (one.band[1].map_or(TOP, |v| y(axis, v)), one.band[0].map_or(bottom, |v| y(axis, v)));
        let _ = write!(
            svg,
            "<rect class=\"b\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            at - half,
            2.0 * half,
            (low - top).max(1.0)
        );
        if let Some([least, greatest]) = one.range {
            let _ = write!(
                svg,
                "<path class=\"s\" d=\"M{at:.1} {:.1}V{:.1}\"/>",
                y(axis, least),
                y(axis, greatest)
            );
        }
        for (i, (_, theory)) in one.theory.iter().enumerate() {
            let _ = write!(
                svg,
                "<path class=\"h h{i}\" d=\"M{:.1} {:.1}h{:.1}\"/>",
                at - half,
                y(axis, *theory),
                2.0 * half
            );
        }
        if let Some(value) = one.measured {
            let v = y(axis, value);
            let _ = if one.inside {
                write!(svg, "<circle class=\"i\" cx=\"{at:.1}\" cy=\"{v:.1}\" r=\"3\"/>")
            } else {
                write!(
                    svg,
                    "<path class=\"o\" d=\"M{:.1} {:.1}l7 7m0 -7l-7 7\"/>",
                    at - 3.5,
                    v - 3.5
                )
            };
        }
        let name = escape(&one.name);
        let _ = if turned {
            write!(
                svg,
                "<text class=\"t e\" transform=\"translate({:.1} {:.0}) rotate(-50)\">{name}</text>",
                at + 3.0,
                bottom + 10.0
            )
        } else {
            write!(svg, "<text class=\"t m\" x=\"{at:.1}\" y=\"{:.0}\">{name}</text>", HEIGHT - 4.0)
        };
    }
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Unit;

    #[test]
    fn no_peak_is_lost() {
        let mut points: Vec<(f64, f64)> =
            (0..10_000).map(|i| (f64::from(i) / 100.0, 1.0 + f64::from(i % 7) * 0.01)).collect();
        points[1234].1 = 50.0;
        points[7777].1 = -3.0;
        let thin = thinned(&points, 100.0);
        assert!(thin.len() <= 2 * STRETCHES + 2, "{}", thin.len());
        assert!(thin.contains(&(12.34, 50.0)) && thin.contains(&(77.77, -3.0)));
        assert!(thin.windows(2).all(|pair| pair[0].0 <= pair[1].0), "in the order of time");
        assert_eq!(thinned(&points[..200], 100.0), points[..200], "few are left alone");
    }

    #[test]
    fn a_gap_is_a_gap() {
        let axis = Axis { low: 0.0, high: 1.0, unit: Unit::Plain };
        let time = Axis { low: 0.0, high: 4.0, unit: Unit::Plain };
        let drawn =
            path(&[(0.0, 0.5), (1.0, 0.5), (2.0, f64::NAN), (3.0, 0.5), (4.0, 0.5)], &axis, &time);
        assert_eq!(drawn.matches('M').count(), 2, "{drawn}");
        assert_eq!(drawn.matches('l').count(), 2, "{drawn}");
    }

    #[test]
    fn inside_and_outside_differ_by_shape() {
        let one = |measured: f64, inside| Judged {
            name: "n<4".into(),
            measured: Some(measured),
            range: Some([0.1, 0.9]),
            band: [Some(0.2), None],
            inside,
            theory: vec![("max-min", 0.5)],
        };
        let svg = by_variant(
            &[one(0.3, true), one(0.1, false)],
            &Axis { low: 0.0, high: 1.0, unit: Unit::Share },
            "x & y",
        );
        assert_eq!((svg.matches("<circle").count(), svg.matches("class=\"o\"").count()), (1, 1));
        assert!(svg.contains("n&lt;4") && svg.contains("x &amp; y"));
    }
}
