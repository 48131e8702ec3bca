//! The pages: head, style, navigation, sections in their order.

use std::fmt::Write as _;

use super::{Section, anchor, called, verdict};
use crate::html::{FIGURE_JS, REPORT_CSS, escape, inline};
use crate::human;
use crate::strict::hash;

const PAPERS_CSS: &str = include_str!("../../assets/papers.css");
/// What lets charts be saved; the only script that these pages may run.
const PAPERS_JS: &str = include_str!("../../assets/papers.js");

/// A paper and its figures.
#[derive(Debug, Clone, Copy)]
pub struct Paper<'a> {
    /// Name of the paper's directory.
    pub name: &'a str,
    /// Authors, title, where and when.
    pub title: &'a str,
    /// Paragraphs about the paper.
    pub about: &'a str,
    /// Its figures, in its order.
    pub sections: &'a [Section],
}

impl Paper<'_> {
    /// What the command is given for its figures: its name, if that is known, or their files.
    fn again(&self) -> String {
        if self.sections.iter().all(|s| s.again == s.name) {
            return self.name.to_owned();
        }
        self.sections.iter().map(|s| s.again.as_str()).collect::<Vec<_>>().join(" ")
    }

    fn counts(&self) -> (usize, usize) {
        (
            self.sections.iter().map(|s| s.inside).sum(),
            self.sections.iter().map(|s| s.outside).sum(),
        )
    }
}

/// Content of the overview page.
#[derive(Debug, Clone, Copy)]
pub struct Front<'a> {
    /// The papers, in their order.
    pub papers: &'a [Paper<'a>],
    /// The tables that close it, where each protocol fails; empty if none was made.
    pub tables: &'a str,
    /// Figures that were left out.
    pub left_out: &'a [String],
    /// The command that makes it again.
    pub command: &'a str,
    /// The version of the program.
    pub version: &'a str,
}

/// `script`: the only one that the page may run; empty for none.
fn head(title: &str, version: &str, script: &str, page: &mut String) {
    page.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str(
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta \
            name=\"color-scheme\" content=\"light dark\">\n",
    );
    let _ = writeln!(
        page,
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; \
         style-src 'unsafe-inline'; img-src data:\">",
        if script.is_empty() { "'none'".to_owned() } else { hash(script) }
    );
    page.push_str("<link rel=\"icon\" href=\"data:,\">\n");
    let _ = write!(
        page,
        "<meta name=\"generator\" content=\"xcpnet {}\">\n<title>{}</title>\n<style>\n",
        escape(version),
        escape(title)
    );
    page.push_str(REPORT_CSS);
    page.push_str(PAPERS_CSS);
    page.push_str("</style>\n</head>\n<body class=\"papers\">\n<main>\n");
}

fn foot(command: &str, version: &str, script: &str, page: &mut String) {
    let script =
        if script.is_empty() { String::new() } else { format!("<script>{script}</script>\n") };
    let _ = write!(
        page,
        "<footer>\n<p>Made by xcpnet {} with <code>{}</code>. The same files, seeds and version \
            give the same numbers.</p>\n</footer>\n</main>\n{script}</body>\n</html>\n",
        escape(version),
        escape(command)
    );
}

/// The page of one paper.
#[must_use]
pub fn paper_page(paper: &Paper<'_>, command: &str, version: &str) -> String {
    let mut page = String::new();
    let script = [FIGURE_JS, PAPERS_JS].concat();
    head(paper.title, version, &script, &mut page);
    let (inside, outside) = paper.counts();
    let _ = write!(
        page,
        "<nav class=\"facts\"><a href=\"report.html\">All papers</a></nav>\n<header>\n<h1>{}</h1>\n",
        escape(paper.title)
    );
    for paragraph in paper.about.split("\n\n").filter(|p| !p.is_empty()) {
        let _ = writeln!(page, "<p class=\"lead\">{}</p>", inline(paragraph));
    }
    let _ = writeln!(
        page,
        "<p class=\"facts\">{} · <code>xcpnet reproduce {}</code></p>\n</header>",
        verdict(inside, outside),
        escape(&paper.again())
    );
    list(paper, "", &mut page);
    for section in paper.sections {
        page.push_str(&section.html);
    }
    foot(command, version, &script, &mut page);
    page
}

/// The figures of a paper, a line for each.
fn list(paper: &Paper<'_>, file: &str, page: &mut String) {
    page.push_str("<div class=\"wide\"><table class=\"contents\">\n<tbody>\n");
    for s in paper.sections {
        let _ = writeln!(
            page,
            "<tr><th scope=\"row\"><a href=\"{file}#{}\">{}</a></th><td \
                class=\"what\">{}</td><td>{}</td><td><code>xcpnet reproduce {}</code></td></tr>",
            escape(anchor(&s.name)),
            escape(&called(&s.name)),
            escape(&s.title),
            verdict(s.inside, s.outside),
            escape(&s.again)
        );
    }
    page.push_str("</tbody></table></div>\n");
}

/// The page that leads to the others.
#[must_use]
pub fn front_page(front: &Front<'_>) -> String {
    let mut page = String::new();
    let title = if front.papers.is_empty() {
        "Explicit congestion control: tables of what each protocol makes of each situation"
    } else {
        "Explicit congestion control: the papers, reproduced"
    };
    head(title, front.version, "", &mut page);
    let inside: usize = front.papers.iter().map(|p| p.counts().0).sum();
    let outside: usize = front.papers.iter().map(|p| p.counts().1).sum();
    let figures: usize = front.papers.iter().map(|p| p.sections.len()).sum();
    let _ = writeln!(page, "<header>\n<h1>{title}</h1>");
    if !front.papers.is_empty() {
        let _ = writeln!(
            page,
            "<p class=\"lead\">{} of {}, each run as the paper describes it and compared with \
             what the paper claims. {} of {} claims lie inside their bands. The source of a band \
             is given beside it; each figure’s text says what the paper leaves open and what was \
             chosen.</p>",
            human::plural(figures as u64, "figure"),
            human::plural(front.papers.len() as u64, "paper"),
            inside,
            inside + outside
        );
    }
    page.push_str("</header>\n");
    for paper in front.papers {
        let file = format!("{}.html", escape(paper.name));
        let (inside, outside) = paper.counts();
        let _ = write!(
            page,
            "<section>\n<h2><a href=\"{file}\">{}</a></h2>\n<p class=\"facts\">{} · <code>xcpnet \
                reproduce {}</code></p>\n",
            escape(paper.title),
            verdict(inside, outside),
            escape(&paper.again())
        );
        list(paper, &file, &mut page);
        page.push_str("</section>\n");
    }
    if !front.left_out.is_empty() {
        let _ = writeln!(
            page,
            "<p class=\"note\">This is a quick run: it has fewer variants and seeds, and leaves \
             out the claims that are known to be outside their bands. Left out: {}.</p>",
            escape(&front.left_out.join(", "))
        );
    }
    page.push_str(front.tables);
    foot(front.command, front.version, "", &mut page);
    page
}
