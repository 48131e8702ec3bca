//! A sheet as PDF: one page. Text is in Helvetica, one of the fonts that a file need not bring
//! along, in the encoding WinAnsi; what that does not have is a question mark.

use pdf_writer::types::LineJoinStyle;
use pdf_writer::{Content, Finish as _, Name, Pdf, Rect, Ref, Str, TextStr};

use super::drawing::{Anchor, Colour, Item, Mark, Sheet, text_width};

/// The part of a circle's radius at which the handles of a Bézier quarter lie.
const HANDLE: f32 = 0.552_28;

/// The file.
pub(super) fn write(sheet: &Sheet, title: &str) -> Vec<u8> {
    let [catalogue, pages, page, content, font, about] = [1, 2, 3, 4, 5, 6].map(Ref::new);
    let name = Name(b"F");
    let mut pdf = Pdf::new();
    pdf.catalog(catalogue).pages(pages);
    pdf.pages(pages).kids([page]).count(1);
    let mut leaf = pdf.page(page);
    leaf.media_box(Rect::new(0.0, 0.0, sheet.width as f32, sheet.height as f32))
        .parent(pages)
        .contents(content);
    leaf.resources().fonts().pair(name, font);
    leaf.finish();
    pdf.type1_font(font)
        .base_font(Name(b"Helvetica"))
        .encoding_predefined(Name(b"WinAnsiEncoding"));
    pdf.document_info(about).title(TextStr(title)).creator(TextStr("xcpnet"));
    let mut drawn = Content::new();
    drawn.set_line_join(LineJoinStyle::RoundJoin);
    for item in &sheet.items {
        draw(item, sheet.height, name, &mut drawn);
    }
    pdf.stream(content, &drawn.finish());
    pdf.finish()
}

fn draw(item: &Item, height: f64, font: Name<'_>, out: &mut Content) {
    // PDF counts from the lower left corner.
    let at = |(x, y): (f64, f64)| (x as f32, (height - y) as f32);
    match item {
        Item::Path { points, colour, width, dashes } => {
            let (r, g, b) = parts(*colour);
            out.set_stroke_rgb(r, g, b).set_line_width(*width as f32);
            out.set_dash_pattern(dashes.iter().map(|&d| d as f32), 0.0);
            trace(points, at, out);
            out.stroke();
        }
        Item::Mark { at: centre, mark: Mark::Circle, colour } => {
            let (r, g, b) = parts(*colour);
            let ((x, y), radius) = (at(*centre), Mark::RADIUS as f32);
            let h = HANDLE * radius;
            out.set_fill_rgb(r, g, b).move_to(x + radius, y);
            out.cubic_to(x + radius, y + h, x + h, y + radius, x, y + radius);
            out.cubic_to(x - h, y + radius, x - radius, y + h, x - radius, y);
            out.cubic_to(x - radius, y - h, x - h, y - radius, x, y - radius);
            out.cubic_to(x + h, y - radius, x + radius, y - h, x + radius, y).fill_nonzero();
        }
        Item::Mark { at: centre, mark, colour } => {
            let (r, g, b) = parts(*colour);
            out.set_fill_rgb(r, g, b);
            trace(&mark.corners(*centre), at, out);
            out.close_path().fill_nonzero();
        }
        Item::Text { at: place, text, size, anchor, upright } => {
            let width = text_width(text, *size) as f32;
            let back = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => width / 2.0,
                Anchor::End => width,
            };
            let (x, y) = at(*place);
            let matrix = if *upright {
                [0.0, 1.0, -1.0, 0.0, x, y - back]
            } else {
                [1.0, 0.0, 0.0, 1.0, x - back, y]
            };
            out.set_fill_gray(0.13)
                .begin_text()
                .set_font(font, *size as f32)
                .set_text_matrix(matrix);
            out.show(Str(&encoded(text))).end_text();
        }
    }
}

fn trace(points: &[(f64, f64)], at: impl Fn((f64, f64)) -> (f32, f32), out: &mut Content) {
    for (i, point) in points.iter().enumerate() {
        let (x, y) = at(*point);
        if i == 0 {
            out.move_to(x, y)
        } else {
            out.line_to(x, y)
        };
    }
}

fn parts(Colour(r, g, b): Colour) -> (f32, f32, f32) {
    (f32::from(r) / 255.0, f32::from(g) / 255.0, f32::from(b) / 255.0)
}

/// Text in WinAnsi.
fn encoded(text: &str) -> Vec<u8> {
    let byte = |c: char| match c {
        ' '..='~' | '\u{a0}'..='\u{ff}' => c as u8,
        '–' => 0x96,
        '’' => 0x92,
        _ => b'?',
    };
    text.chars().map(byte).collect()
}
