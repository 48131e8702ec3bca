//! What a page may ask. Every request is one JSON object, and so is every answer: `{"ok": true,
//! ...}` or `{"ok": false, "text": ...}`, with `problems` where the scenario's text is at fault.

use serde::Deserialize;

/// A request from the page.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// What is in a text.
    Read {
        /// Name of the file, for messages and titles.
        name: String,
        /// The scenario.
        text: String,
        /// Paths whose values are wanted as they are written, for each variant.
        #[serde(default)]
        written: Vec<String>,
    },
    /// A text with other settings.
    Set {
        /// The scenario.
        text: String,
        /// One after the other.
        changes: Vec<Change>,
        /// Name of the file, if what is in the new text is wanted, too: `read` of the answer is
        /// then what `Read` answers.
        #[serde(default)]
        name: Option<String>,
        /// As for `Read`.
        #[serde(default)]
        written: Vec<String>,
    },
    /// Run one variant. Partial results come while it runs.
    Run {
        /// Name of the file.
        name: String,
        /// The scenario.
        text: String,
        /// Which of its variants, from 0.
        variant: usize,
        /// No run of more packets times links is begun.
        most_hops: f64,
        /// Whether packets are to be watched.
        #[serde(default)]
        packets: bool,
    },
    /// Series of the run before, as `xcpnet run --out` writes them.
    Csv {
        /// `links` or `flows`.
        table: String,
    },
    /// All variants in one figure, as `xcpnet plot` draws it.
    Figure {
        /// Name of the file.
        name: String,
        /// The scenario.
        text: String,
        /// The quantity's column.
        quantity: String,
        /// The link direction, where it is a link's quantity.
        link: Option<String>,
        /// No runs of more packets times links together.
        most_hops: f64,
    },
}

/// A setting to change.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// For this variant; for all if absent.
    pub variant: Option<String>,
    /// Path, as for `--set`.
    pub path: String,
    /// Value of the setting, as TOML.
    pub value: String,
}
