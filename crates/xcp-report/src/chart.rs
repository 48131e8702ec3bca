//! A chart of measured points and theory's curves over a parameter, as one SVG without scripts: for results of several runs, where the interactive
//! plots of the report have time as their axis.
//!
//! Colours and fonts are the page's: `currentColor` and the custom properties `--c0` to `--c7`, with values of their own where there are none.

use std::fmt::Write as _;

use crate::html::escape;
use crate::{Curve, human};

/// What a chart shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart<'a> {
    /// Name of the x axis, unit included.
    pub x: &'a str,
    /// Name of the y axis, unit included.
    pub y: &'a str,
    /// Whether x is drawn on a logarithmic scale, as for numbers of flows from 4 to 1024; values of 0 and below are then left out.
    pub log_x: bool,
    /// Measured: dots, joined by a line.
    pub measured: &'a [Curve],
    /// Theory: dashed lines.
    pub theory: &'a [Curve],
}

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 42.0;
const COLOURS: [&str; 8] = ["#2f6fb3", "#c4622d", "#3b8a4d", "#8757a8", "#b53a4b", "#557a80", "#9a7a1c", "#6b6b6b"];

impl Chart<'_> {
    /// The drawing, with its legend below it. Says so in words where there is nothing to draw.
    #[must_use]
    pub fn svg(&self) -> String {
        let all = || self.measured.iter().chain(self.theory);
        let shown = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite() && (!self.log_x || *x > 0.0);
        let points: Vec<(f64, f64)> = all().flat_map(|c| &c.points).copied().filter(shown).collect();
        let Some(&first) = points.first() else { return "<p class=\"note\">Nothing to draw.</p>\n".to_owned() };
        let scale = |x: f64| if self.log_x { x.ln() } else { x };
        let (x0, x1) = points.iter().fold((scale(first.0), scale(first.0)), |(a, b), p| (a.min(scale(p.0)), b.max(scale(p.0))));
        let (y0, y1) = points.iter().fold((0.0f64, 0.0f64), |(a, b), p| (a.min(p.1), b.max(p.1)));
        let (x1, y1) = (if x1 > x0 { x1 } else { x0 + 1.0 }, if y1 > y0 { y1 + 0.05 * (y1 - y0) } else { y0 + 1.0 });
        let px = |x: f64| LEFT + (scale(x) - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT);
        let py = |y: f64| HEIGHT - BOTTOM - (y - y0) / (y1 - y0) * (HEIGHT - TOP - BOTTOM);

        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\" font-size=\"12\" fill=\"currentColor\" stroke-linejoin=\"round\">\n",
            escape(&self.in_words())
        );
        let mut put = |text: String| out.push_str(&text);
        for tick in ticks(y0, y1) {
            let y = py(tick);
            put(format!(
                "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"currentColor\" stroke-opacity=\".15\"/>",
                WIDTH - RIGHT
            ));
            put(format!("<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n", LEFT - 6.0, y + 4.0, human::number(tick)));
        }
        for tick in if self.log_x { values(&points) } else { ticks(x0, x1) } {
            put(format!(
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                px(tick),
                HEIGHT - BOTTOM + 16.0,
                human::number(tick)
            ));
        }
        put(format!(
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 8.0,
            escape(self.x)
        ));
        let middle = (TOP + HEIGHT - BOTTOM) / 2.0;
        put(format!("<text transform=\"translate(13 {middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n", escape(self.y)));
        for (i, curve) in all().enumerate() {
            let theory = i >= self.measured.len();
            // A theory of the same name as a measurement has its colour.
            let place = self.measured.iter().position(|m| m.name == curve.name).unwrap_or(i % COLOURS.len());
            let colour = format!("var(--c{place}, {})", COLOURS[place % COLOURS.len()]);
            let dash = if theory { " stroke-dasharray=\"6 4\"" } else { "" };
            for run in curve.points.split(|p| !shown(p)).filter(|run| !run.is_empty()) {
                let path: Vec<String> = run.iter().map(|&(x, y)| format!("{:.1},{:.1}", px(x), py(y))).collect();
                put(format!(
                    "<polyline points=\"{}\" fill=\"none\" style=\"stroke:{colour}\" stroke-width=\"1.75\"{dash}/>\n",
                    path.join(" ")
                ));
                if !theory {
                    for &(x, y) in run {
                        put(format!("<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" style=\"fill:{colour}\"/>", px(x), py(y)));
                    }
                }
            }
        }
        out.push_str("</svg>\n<ul class=\"legend\">");
        for (i, curve) in all().enumerate() {
            let theory = i >= self.measured.len();
            let place = self.measured.iter().position(|m| m.name == curve.name).unwrap_or(i % COLOURS.len());
            let style = if theory { "dashed" } else { "solid" };
            let kind = if theory { " (theory)" } else { "" };
            let swatch = format!("border-top:2px {style} var(--c{place}, {})", COLOURS[place % COLOURS.len()]);
            let _ = write!(out, "<li><span><i style=\"{swatch}\"></i>{}{kind}</span></li>", escape(&curve.name));
        }
        out.push_str("</ul>\n");
        out
    }

    fn in_words(&self) -> String {
        let names = |curves: &[Curve]| curves.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ");
        let theory = if self.theory.is_empty() { String::new() } else { format!("; theory: {}", names(self.theory)) };
        format!("{} over {}: {}{theory}", self.y, self.x, names(self.measured))
    }
}

/// Round values within a range, about five.
fn ticks(from: f64, to: f64) -> Vec<f64> {
    let rough = (to - from) / 5.0;
    let decade = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * decade).into_iter().find(|s| *s >= rough).unwrap_or(rough);
    let first = (from / step).ceil() as i64;
    (first..=(to / step + 1e-9).floor() as i64).map(|i| i as f64 * step).collect()
}

/// The values of x that there are, at most ten of them.
fn values(points: &[(f64, f64)]) -> Vec<f64> {
    let mut xs: Vec<f64> = points.iter().map(|p| p.0).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let every = xs.len().div_ceil(10);
    xs.into_iter().step_by(every.max(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, points: &[(f64, f64)]) -> Curve {
        Curve { name: name.into(), points: points.to_vec() }
    }

    #[test]
    fn every_point_is_drawn_inside() {
        let measured = [curve("XCP", &[(4.0, 0.92), (16.0, 0.84), (1024.0, 0.8)])];
        let theory = [curve("XCP", &[(4.0, 0.9227), (16.0, 0.8423), (64.0, f64::NAN), (1024.0, 0.8008)])];
        let svg = Chart { x: "flows", y: "utilisation", log_x: true, measured: &measured, theory: &theory }.svg();
        assert_eq!(svg.matches("<circle").count(), 3);
        assert_eq!(svg.matches("<polyline").count(), 3, "one measured; theory in two pieces around its gap");
        assert!(svg.contains("XCP (theory)") && svg.contains(">1024</text>"), "{svg}");
        for cx in svg.split("cx=\"").skip(1).map(|s| s.split('"').next().unwrap().parse::<f64>().unwrap()) {
            assert!((LEFT..=WIDTH - RIGHT).contains(&cx), "{cx}");
        }
    }

    #[test]
    fn names_are_text() {
        let measured = [curve("<script>", &[(0.0, 1.0)])];
        let svg = Chart { x: "<b>", y: "&", log_x: false, measured: &measured, theory: &[] }.svg();
        assert!(!svg.contains("<script") && !svg.contains("<b>"));
    }

    #[test]
    fn nothing_is_said_in_words() {
        let empty = Chart { x: "n", y: "u", log_x: true, measured: &[curve("a", &[(0.0, 1.0)])], theory: &[] };
        assert!(empty.svg().contains("Nothing to draw"));
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(0.0, 1.05), [0.0, 0.5, 1.0]);
        assert_eq!(ticks(-3.0, 60.0), [0.0, 20.0, 40.0, 60.0]);
    }
}
