//! One offline HTML page for one or several runs side by side.
//!
//! The numbers are in the page twice: as headings and tables written here, readable without
//! scripts, and as compact arrays (`data`) that `assets/report.js` draws with uPlot. The page's
//! own content-security policy forbids every network access.

/// Appends formatted text; writing into a string cannot fail.
macro_rules! put {
    ($page:expr, $($arg:tt)*) => {{ let _ = write!($page, $($arg)*); }};
}

mod data;
mod plots;
mod prose;
mod sections;
mod tables;

use xcp_model::Scenario;
use xcp_model::Verdict;
use xcp_model::run::Run;

pub(crate) use self::data::base64;
pub(crate) use self::prose::{inline, paragraphs};
use crate::reference::Reference;

pub(crate) const UPLOT_JS: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
pub(crate) const UPLOT_CSS: &str = include_str!("../../assets/uplot/uPlot.min.css");
pub(crate) const UPLOT_LICENCE: &str = include_str!("../../assets/uplot/LICENSE");
pub(crate) const FIGURE_JS: &str = include_str!("../../assets/figure.js");
pub(crate) const NUMBERS_JS: &str = include_str!("../../assets/numbers.js");
const REPORT_JS: &str = include_str!("../../assets/report.js");
pub(crate) const REPORT_CSS: &str = include_str!("../../assets/report.css");

/// What a report is made of.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// The runs, in the order in which they stand side by side.
    pub runs: &'a [Run],
    /// The scenario of each run, in the same order; empty if they are not known. Tells which links
    /// are bottlenecks and what was measured when.
    pub scenarios: &'a [Scenario],
    /// The files the runs came from.
    pub sources: &'a [Source],
    /// Expectations and what came of them: a list for each run, in the same order; empty if nothing
    /// was judged.
    pub verdicts: &'a [Vec<Verdict>],
    /// What to compare with, theory for instance: a list for each run, in the same order; empty if
    /// there is nothing.
    pub references: &'a [Vec<Reference>],
    /// The command that makes this report again; empty if there is none.
    pub command: &'a str,
    /// For each file the address of a page in which it can be changed and run; empty if there are
    /// none.
    pub playgrounds: &'a [String],
    /// The version of the program.
    pub version: &'a str,
}

/// A scenario file that is shown in the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Name of the file.
    pub name: String,
    /// Text of the file.
    pub text: String,
}

impl Report<'_> {
    fn scenario(&self, run: usize) -> Option<&Scenario> {
        self.scenarios.get(run)
    }

    fn references(&self, run: usize) -> &[Reference] {
        self.references.get(run).map_or(&[], Vec::as_slice)
    }
}

/// The report as one page of HTML.
#[must_use]
pub fn html(report: &Report<'_>) -> String {
    let title = report.runs.first().map_or("No runs", |run| run.title.as_str());
    let mut page = String::with_capacity(1 << 20);
    let mut put = |text: &str| page.push_str(text);
    put("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    put("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta \
            name=\"color-scheme\" content=\"light dark\">\n");
    put("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src \
            'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">\n");
    put("<link rel=\"icon\" href=\"data:,\">\n");
    put(&format!(
        "<meta name=\"generator\" content=\"xcpnet {}\">\n<title>{}</title>\n",
        escape(report.version),
        escape(title)
    ));
    put("<style>\n");
    put(UPLOT_CSS);
    put("\n");
    put(REPORT_CSS);
    put("</style>\n</head>\n<body>\n<main>\n");
    sections::write(report, &mut page);
    page.push_str("</main>\n<script type=\"application/json\" id=\"xcpnet-data\">");
    page.push_str(&script_safe(&data::json(report)));
    page.push_str("</script>\n<script>\n/*\n");
    page.push_str(UPLOT_LICENCE.trim_end());
    page.push_str("\n*/\n");
    page.push_str(UPLOT_JS);
    page.push_str("\n</script>\n<script>\n");
    page.push_str(FIGURE_JS);
    page.push_str(NUMBERS_JS);
    page.push_str("</script>\n<script>\n");
    page.push_str(REPORT_JS);
    page.push_str("</script>\n</body>\n</html>\n");
    page
}

/// Text for HTML elements and quoted attributes.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// JSON that cannot end the script element it stands in.
pub(crate) fn script_safe(json: &str) -> String {
    json.replace('<', "\\u003c")
}
