//! Cells set in columns for a terminal. What stands in them is for others.

/// How a column is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows of text, set in columns. The first row is the heading.
#[derive(Debug)]
pub struct Grid {
    align: Vec<Align>,
    rows: Vec<Vec<String>>,
    /// Leaves the first column blank where it repeats the row above.
    pub grouped: bool,
}

impl Grid {
    /// A table with these headings.
    #[must_use]
    pub fn new(columns: &[(&str, Align)]) -> Self {
        Self {
            align: columns.iter().map(|c| c.1).collect(),
            rows: vec![columns.iter().map(|c| c.0.to_owned()).collect()],
            grouped: true,
        }
    }

    /// Adds a row, a cell for each column.
    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Drops columns whose cells are all equal to `boring`, heading aside.
    #[must_use]
    pub fn without(self, heading: &str, boring: &str) -> Self {
        if let Some(i) = self.rows[0].iter().position(|h| h == heading)
            && self.rows[1..].iter().all(|row| row[i] == boring)
        {
            return self.without_column(i);
        }
        self
    }

    /// Drops a column.
    #[must_use]
    pub fn without_column(mut self, i: usize) -> Self {
        self.align.remove(i);
        for row in &mut self.rows {
            row.remove(i);
        }
        self
    }

    /// Sets the rows; a table too wide loses columns from the right, never the first two, and says
    /// so.
    pub fn render(&self, width: usize, out: &mut String) {
        let widths: Vec<usize> = (0..self.align.len())
            .map(|i| self.rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0))
            .collect();
        let mut shown = widths.len();
        while shown > 2 && widths[..shown].iter().sum::<usize>() + 2 * (shown - 1) > width {
            shown -= 1;
        }
        let mut before: &str = "\u{0}";
        for (n, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for i in 0..shown {
                let repeated = self.grouped && i == 0 && n > 1 && row[0] == before;
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
            out.push_str(&format!("(not shown for lack of width: {hidden})\n"));
        }
    }
}
