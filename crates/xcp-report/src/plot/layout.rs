//! Where everything of a figure goes on its sheet: a column's width of a journal, axes at the left
//! and below, the names of the curves above.

use super::drawing::{Anchor, Colour, Item, LETTER_WIDTHS, Mark, Sheet, text_width};
use super::figure::{Curve, Figure, Manner, Measure, Range};
use crate::axis::{self, Axis, power_of_ten};

/// A column of a two-column page, points.
const WIDTH: f64 = 252.0;
const HEIGHT: f64 = 160.0;
const LEFT: f64 = 42.0;
const RIGHT: f64 = 8.0;
const BOTTOM: f64 = 30.0;
const SIZE: f64 = 8.0;
/// A line of the legend.
const LEADING: f64 = 11.0;
/// Points of a curve, at most: each stretch of a line keeps its least and its greatest.
const STRETCHES: usize = 600;

/// Told apart by eyes that see no red or green, too (Wong, Nature Methods 8, 2011).
const COLOURS: [Colour; 7] = [
    Colour(0x00, 0x72, 0xb2),
    Colour(0xd5, 0x5e, 0x00),
    Colour(0x00, 0x9e, 0x73),
    Colour(0xcc, 0x79, 0xa7),
    Colour(0xe6, 0x9f, 0x00),
    Colour(0x56, 0xb4, 0xe9),
    Colour(0x22, 0x22, 0x22),
];
const DASHES: [&[f64]; 4] = [&[], &[4.0, 2.0], &[1.0, 1.5], &[5.0, 1.5, 1.0, 1.5]];
const MARKS: [Mark; 4] = [Mark::Circle, Mark::Square, Mark::Triangle, Mark::Diamond];
const GREY: Colour = Colour(0xdd, 0xdd, 0xdd);
const BLACK: Colour = Colour(0x22, 0x22, 0x22);

/// How sheets look, for the script that draws those of a report's charts (`assets/figure.js`).
pub(crate) fn look() -> serde_json::Value {
    serde_json::json!({
        "width": WIDTH, "height": HEIGHT, "left": LEFT, "right": RIGHT, "bottom": BOTTOM,
        "size": SIZE, "leading": LEADING, "stretches": STRETCHES,
        "colours": COLOURS.map(Colour::hex), "grey": GREY.hex(), "black": BLACK.hex(),
        "dashes": DASHES, "letters": &LETTER_WIDTHS[..],
    })
}

/// An axis: what it measures, and from where to where.
struct Scale {
    measure: Measure,
    axis: Axis,
}

impl Scale {
    fn new(measure: Measure, values: impl Iterator<Item = f64> + Clone) -> Self {
        let axis = match measure.range {
            Range::FromZero => Axis::from_zero(values, measure.unit),
            Range::Around => Axis::around(values, measure.unit),
            Range::ToTheEnd => {
                Axis { low: 0.0, high: values.fold(1e-9, f64::max), unit: measure.unit }
            }
            Range::Logarithmic => {
                let there = values.filter(|v| v.is_finite() && *v > 0.0);
                let (least, greatest) =
                    there.fold((f64::INFINITY, 0.0f64), |(a, b), v| (a.min(v), b.max(v)));
                let (low, high) = if greatest > 0.0 { (least, greatest) } else { (1.0, 10.0) };
                // Half a step beyond on either side; whole decades would leave much of the sheet
                // empty.
                Axis { low: low / 1.3, high: high * 1.3, unit: measure.unit }
            }
        };
        Self { measure, axis }
    }

    fn share(&self, value: f64) -> f64 {
        if self.measure.range == Range::Logarithmic {
            let (low, high) = (libm::log(self.axis.low), libm::log(self.axis.high));
            ((libm::log(value.max(f64::MIN_POSITIVE)) - low) / (high - low)).clamp(0.0, 1.0)
        } else {
            self.axis.share(value)
        }
    }

    /// Places of the ticks, and their labels in the axis' unit.
    fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        let values = if self.measure.range == Range::Logarithmic {
            self.decades()
        } else {
            self.axis.ticks(most)
        };
        values.into_iter().map(|value| (value, self.axis.label(value))).collect()
    }

    /// 1, 10, 100 and, where that gives fewer than three, 2 and 5 times these.
    fn decades(&self) -> Vec<f64> {
        let (low, high) = (self.axis.low, self.axis.high);
        let (first, last) = (axis::decade(low), axis::decade(high) + 1);
        let steps = |times: &[f64]| -> Vec<f64> {
            let all = (first..=last).flat_map(|n| times.iter().map(move |m| m * power_of_ten(n)));
            all.filter(|v| (low..=high).contains(v)).collect()
        };
        let whole = steps(&[1.0]);
        if whole.len() > 2 { whole } else { steps(&[1.0, 2.0, 5.0]) }
    }

    /// `Goodput (Mbit/s)`.
    fn title(&self) -> String {
        let unit = self.axis.scale().1;
        if unit.is_empty() {
            self.measure.name.to_owned()
        } else {
            format!("{} ({unit})", self.measure.name)
        }
    }
}

/// The sheet of a figure.
pub(super) fn layout(figure: &Figure) -> Sheet {
    let values =
        |of: fn(&(f64, f64)) -> f64| figure.curves.iter().flat_map(|curve| &curve.points).map(of);
    let (x, y) = (Scale::new(figure.x, values(|p| p.0)), Scale::new(figure.y, values(|p| p.1)));
    let mut items = Vec::new();
    let top = legend(&figure.curves, &mut items);
    let height = HEIGHT + top;
    let bottom = height - BOTTOM;
    let at = |(a, b): (f64, f64)| {
        (LEFT + x.share(a) * (WIDTH - LEFT - RIGHT), top + (1.0 - y.share(b)) * (bottom - top))
    };
    let line = |points: Vec<(f64, f64)>, colour, width, dashes| Item::Path {
        points,
        colour,
        width,
        dashes,
    };
    for (value, label) in y.ticks(5) {
        let (_, level) = at((x.axis.low, value));
        items.push(line(vec![(LEFT, level), (WIDTH - RIGHT, level)], GREY, 0.4, &[]));
        let at = (LEFT - 3.0, level + SIZE * 0.35);
        items.push(Item::Text { at, text: label, size: SIZE, anchor: Anchor::End, upright: false });
    }
    for (value, label) in x.ticks(6) {
        let (place, _) = at((value, y.axis.low));
        items.push(line(vec![(place, bottom), (place, bottom + 2.5)], BLACK, 0.5, &[]));
        let at = (place, bottom + 3.0 + SIZE);
        items.push(Item::Text {
            at,
            text: label,
            size: SIZE,
            anchor: Anchor::Middle,
            upright: false,
        });
    }
    items.push(line(vec![(LEFT, top), (LEFT, bottom), (WIDTH - RIGHT, bottom)], BLACK, 0.6, &[]));
    let middle = (LEFT + (WIDTH - LEFT - RIGHT) / 2.0, height - 4.0);
    items.push(Item::Text {
        at: middle,
        text: x.title(),
        size: SIZE,
        anchor: Anchor::Middle,
        upright: false,
    });
    let beside = (SIZE + 1.0, top + (bottom - top) / 2.0);
    items.push(Item::Text {
        at: beside,
        text: y.title(),
        size: SIZE,
        anchor: Anchor::Middle,
        upright: true,
    });
    for (number, curve) in figure.curves.iter().enumerate() {
        draw(number, curve, at, &mut items);
    }
    Sheet { width: WIDTH, height, items }
}

/// The names of the curves, in as many lines as they need; returns where the plot begins below
/// them. A single curve needs no name.
fn legend(curves: &[Curve], items: &mut Vec<Item>) -> f64 {
    const SAMPLE: f64 = 14.0;
    let margin = 6.0;
    if curves.len() < 2 {
        return margin;
    }
    let (mut x, mut line) = (LEFT, 0.0);
    for (number, curve) in curves.iter().enumerate() {
        let width = SAMPLE + 3.0 + text_width(&curve.name, SIZE) + 8.0;
        if x + width > WIDTH && x > LEFT {
            (x, line) = (LEFT, line + LEADING);
        }
        let y = margin + line + SIZE * 0.65;
        let (colour, dashes, mark) = looks(number);
        items.push(match curve.manner {
            Manner::Line => {
                Item::Path { points: vec![(x, y), (x + SAMPLE, y)], colour, width: 1.0, dashes }
            }
            Manner::Points => Item::Mark { at: (x + SAMPLE / 2.0, y), mark, colour },
        });
        let at = (x + SAMPLE + 3.0, y + SIZE * 0.35);
        let text = curve.name.clone();
        items.push(Item::Text { at, text, size: SIZE, anchor: Anchor::Start, upright: false });
        x += width;
    }
    margin + line + LEADING + 3.0
}

fn looks(number: usize) -> (Colour, &'static [f64], Mark) {
    (COLOURS[number % COLOURS.len()], DASHES[number % DASHES.len()], MARKS[number % MARKS.len()])
}

fn draw(
    number: usize,
    curve: &Curve,
    at: impl Fn((f64, f64)) -> (f64, f64),
    items: &mut Vec<Item>,
) {
    let (colour, dashes, mark) = looks(number);
    match curve.manner {
        Manner::Points => {
            let there = curve.points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
            items.extend(there.map(|point| Item::Mark { at: at(*point), mark, colour }));
        }
        // A gap where there is no value.
        Manner::Line => {
            for part in thinned(&curve.points).split(|point| !point.1.is_finite()) {
                if part.len() > 1 {
                    let points = part.iter().map(|point| at(*point)).collect();
                    items.push(Item::Path { points, colour, width: 1.0, dashes });
                }
            }
        }
    }
}

/// The least and the greatest value of each stretch in their order; few points as they are.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let stretch = points.len().div_ceil(STRETCHES);
    if stretch <= 2 {
        return points.to_vec();
    }
    let mut out = Vec::new();
    for part in points.chunks(stretch) {
        let there = || part.iter().filter(|point| point.1.is_finite());
        let least = there().min_by(|a, b| a.1.total_cmp(&b.1));
        let greatest = there().max_by(|a, b| a.1.total_cmp(&b.1));
        match (least, greatest) {
            (Some(a), Some(b)) if a.0 == b.0 && a.1 == b.1 => out.push(*a),
            (Some(a), Some(b)) => out.extend(if a.0 <= b.0 { [*a, *b] } else { [*b, *a] }),
            _ => out.push((part[0].0, f64::NAN)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Unit;

    fn scale(unit: Unit, range: Range, values: &[f64]) -> Scale {
        Scale::new(Measure { name: "Size", unit, range }, values.iter().copied())
    }

    #[test]
    fn decades_are_labelled_in_the_axis_unit() {
        let labels = |values: &[f64]| -> Vec<String> {
            scale(Unit::Bytes, Range::Logarithmic, values)
                .ticks(4)
                .into_iter()
                .map(|tick| tick.1)
                .collect()
        };
        assert_eq!(labels(&[1e3, 2e6]), ["0.001", "0.01", "0.1", "1"]);
        assert_eq!(labels(&[2e3, 3e4]), ["2", "5", "10", "20"]);
        assert_eq!(scale(Unit::Bytes, Range::Logarithmic, &[1e3, 2e6]).title(), "Size (MB)");
        let scale = scale(Unit::Bytes, Range::Logarithmic, &[1e3, 1e5]);
        assert!((scale.share(1e4) - 0.5).abs() < 1e-9, "the middle of two decades");
    }

    #[test]
    fn thinning_keeps_peaks_and_gaps() {
        let mut points: Vec<(f64, f64)> = (0..20_000).map(|i| (f64::from(i), 1.0)).collect();
        points[7_777].1 = 9.0;
        points[8_000].1 = -9.0;
        points[9_000..10_000].iter_mut().for_each(|point| point.1 = f64::NAN);
        let thinned = thinned(&points);
        assert!(thinned.len() <= 2 * STRETCHES && thinned.is_sorted_by(|a, b| a.0 <= b.0));
        assert!(thinned.contains(&(7_777.0, 9.0)) && thinned.contains(&(8_000.0, -9.0)));
        assert!(thinned.iter().any(|point| point.1.is_nan()));
    }
}
