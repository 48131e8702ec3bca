//! A sheet and what is on it, in points (1/72 inch) from its upper left corner. Knows neither axes
//! nor file formats.

/// A colour, eight bits each of red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    /// As SVG and CSS write it.
    pub fn hex(self) -> String {
        let Self(r, g, b) = self;
        format!("#{r:02x}{g:02x}{b:02x}")
    }
}

/// Where a text's given point is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A mark for a point: told apart without colours, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Circle,
    Square,
    Triangle,
    Diamond,
}

/// Something drawn.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    /// A line through points.
    Path { points: Vec<(f64, f64)>, colour: Colour, width: f64, dashes: &'static [f64] },
    /// A mark at a point.
    Mark { at: (f64, f64), mark: Mark, colour: Colour },
    /// A text; `upright`: turned to read from below.
    Text { at: (f64, f64), text: String, size: f64, anchor: Anchor, upright: bool },
}

/// A sheet.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sheet {
    pub width: f64,
    pub height: f64,
    pub items: Vec<Item>,
}

impl Mark {
    /// Half of its width.
    pub const RADIUS: f64 = 2.4;

    /// Its corners around a point; a circle has none.
    pub fn corners(self, (x, y): (f64, f64)) -> Vec<(f64, f64)> {
        let r = Self::RADIUS;
        match self {
            Self::Circle => Vec::new(),
            Self::Square => vec![(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)],
            Self::Triangle => vec![(x, y - r), (x + r, y + r), (x - r, y + r)],
            Self::Diamond => vec![(x, y - r), (x + r, y), (x, y + r), (x - r, y)],
        }
    }
}

/// The widths of Helvetica's letters from the space to the tilde, in thousandths of the size (the
/// font's metrics as Adobe published them).
pub(super) const LETTER_WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

/// The width of a text in Helvetica, points. What the table does not have is as wide as a digit.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let width = |c: char| {
        let place = (c as usize).checked_sub(32);
        place.and_then(|i| LETTER_WIDTHS.get(i)).copied().unwrap_or(556)
    };
    text.chars().map(|c| f64::from(width(c))).sum::<f64>() * size / 1000.0
}
