//! One figure for a paper, as SVG or PDF: what is drawn ([`figure`]), where it goes on the sheet
//! (`layout`), and the two ways to write a sheet down. Runs and files are for others.

mod drawing;
mod figure;
mod layout;
mod pdf;
mod svg;

pub(crate) use layout::look;

pub use figure::{Figure, Kind, NoFigure, Wanted, figure};

impl Figure {
    /// As SVG: one file without scripts, styles or fonts of its own.
    #[must_use]
    pub fn svg(&self) -> String {
        svg::write(&layout::layout(self), &self.title)
    }

    /// As PDF: one page of the figure's size, set in Helvetica, which every reader has.
    #[must_use]
    pub fn pdf(&self) -> Vec<u8> {
        pdf::write(&layout::layout(self), &self.title)
    }
}
