//! Cells set in columns for a terminal. What stands in them is for others.

/// How a column is set.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of text, set in columns. The first row is the heading.
pub(crate) struct Grid {
    align: Vec<Align>,
    rows: Vec<Vec<String>>,
    /// Leaves the first column blank where it repeats the row above.
    pub(crate) grouped: bool,
}

impl Grid {
    pub(crate) fn new(columns: &[(&str, Align)]) -> Self {
        Self { align: columns.iter().map(|c| c.1).collect(), rows: vec![columns.iter().map(|c| c.0.to_owned()).collect()], grouped: true }
    }

    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Drops columns whose cells are all equal to `boring`, heading aside.
    pub(crate) fn without(self, heading: &str, boring: &str) -> Self {
        if let Some(i) = self.rows[0].iter().position(|h| h == heading)
            && self.rows[1..].iter().all(|row| row[i] == boring)
        {
            return self.without_column(i);
        }
        self
    }

    /// Drops a column.
    pub(crate) fn without_column(mut self, i: usize) -> Self {
        self.align.remove(i);
        for row in &mut self.rows {
            row.remove(i);
        }
        self
    }

    /// Sets the rows; a table too wide loses columns from the right, never the first two, and says so.
    pub(crate) fn render(&self, width: usize, out: &mut String) {
        let widths: Vec<usize> = (0..self.align.len()).map(|i| self.rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0)).collect();
        let mut shown = widths.len();
        while shown > 2 && widths[..shown].iter().sum::<usize>() + 2 * (shown - 1) > width {
            shown -= 1;
        }
        let mut before: &str = "\u{0}";
        for (n, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for i in 0..shown {
                let repeated = self.grouped && i == 0 && n > 0 && row[0] == before;
                let cell = if repeated { "" } else { row[i].as_str() };
                let pad = " ".repeat(widths[i] - cell.chars().count());
                if i > 0 {
                    line.push_str("  ");
                }
                match self.align[i] {
                    Align::Left => line.extend([cell, &pad]),
                    Align::Right => line.extend([pad.as_str(), cell]),
                }
            }
            before = &row[0];
            out.push_str(line.trim_end());
            out.push('\n');
        }
        if shown < widths.len() {
            let hidden = self.rows[0][shown..].join(", ");
            out.push_str(&format!("(not shown, for want of width: {hidden})\n"));
        }
    }
}
