//! A sheet as SVG.

use std::fmt::Write as _;

use super::drawing::{Anchor, Item, Mark, Sheet, text_width};
use crate::html::escape;

/// The file.
pub(super) fn write(sheet: &Sheet, title: &str) -> String {
    let Sheet { width, height, items } = sheet;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}pt\" height=\"{height}pt\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"Helvetica, Arial, \
            sans-serif\">\n\
         <title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n",
        words(title)
    );
    for item in items {
        // Writing into a string cannot fail.
        let _ = match item {
            Item::Path { points, colour, width, dashes } => {
                let dashes: Vec<String> = dashes.iter().map(f64::to_string).collect();
                let dashes = if dashes.is_empty() {
                    String::new()
                } else {
                    format!(" stroke-dasharray=\"{}\"", dashes.join(" "))
                };
                let d = path(points);
                let stroke = colour.hex();
                writeln!(
                    out,
                    "<path d=\"{d}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\" \
                     stroke-linejoin=\"round\"{dashes}/>"
                )
            }
            Item::Mark { at: (x, y), mark: Mark::Circle, colour } => {
                let (x, y, r) = (short(*x), short(*y), Mark::RADIUS);
                writeln!(out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" fill=\"{}\"/>", colour.hex())
            }
            Item::Mark { at, mark, colour } => {
                writeln!(
                    out,
                    "<path d=\"{}z\" fill=\"{}\"/>",
                    path(&mark.corners(*at)),
                    colour.hex()
                )
            }
            Item::Text { at: (x, y), text, size, anchor, upright } => {
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                let (x, y) = (short(*x), short(*y));
                let turned = if *upright {
                    format!(" transform=\"rotate(-90 {x} {y})\"")
                } else {
                    String::new()
                };
                // What begins somewhere is a key's name, with the next key behind it: it has the
                // length that was reserved, in whatever font the reader has.
                let length = match anchor {
                    "start" => format!(
                        " textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"",
                        short(text_width(text, *size))
                    ),
                    _ => String::new(),
                };
                let text = words(text);
                writeln!(
                    out,
                    "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" text-anchor=\"{anchor}\" \
                        fill=\"#222\"{length}{turned}>\
                     {text}</text>"
                )
            }
        };
    }
    out.push_str("</svg>\n");
    out
}

/// Text for an element; control characters have no place in XML, escaped or not.
fn words(text: &str) -> String {
    escape(&text.replace(char::is_control, " "))
}

/// A hundredth of a point is finer than any printer.
fn short(x: f64) -> f64 {
    (x * 100.0).round() / 100.0
}

fn path(points: &[(f64, f64)]) -> String {
    let mut out = String::new();
    for (i, (x, y)) in points.iter().enumerate() {
        let _ = write!(out, "{}{} {}", if i == 0 { "M" } else { "L" }, short(*x), short(*y));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What others write into files reaches the figure as text, and as nothing else.
    #[test]
    fn words_are_words() {
        let text = "a\u{1b}[31m<b>&\u{0}".to_owned();
        let item = Item::Text {
            at: (1.0, 2.0),
            text: text.clone(),
            size: 8.0,
            anchor: Anchor::End,
            upright: true,
        };
        let svg = write(&Sheet { width: 10.0, height: 10.0, items: vec![item] }, &text);
        assert_eq!(svg.matches("a [31m&lt;b&gt;&amp; </").count(), 2, "{svg}");
        assert!(!svg.contains(|c: char| c.is_control() && c != '\n'));
    }
}
