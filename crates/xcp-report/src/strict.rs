//! A page that runs its own scripts and no others: its security policy knows each script and style
//! by its hash. What is on the page is its makers' business ([`crate::playground()`],
//! `xcpnet serve`).

use sha2::{Digest as _, Sha256};

use crate::html::{REPORT_CSS, UPLOT_CSS, UPLOT_JS, UPLOT_LICENCE, base64, escape};

/// What such a page is made of, uPlot and the report's looks apart.
#[derive(Debug, Clone, Copy)]
pub struct Strict<'a> {
    /// Title of the page.
    pub title: &'a str,
    /// The version of the program.
    pub version: &'a str,
    /// What else the policy allows scripts, e.g. `'wasm-unsafe-eval'`; empty if nothing.
    pub scripts_may: &'a str,
    /// Directives of the policy besides, each ending in a semicolon.
    pub policy: &'a str,
    /// Style beside the report's.
    pub style: &'a str,
    /// The body, as HTML; data that scripts read included.
    pub body: &'a str,
    /// The page's own script.
    pub script: &'a str,
}

/// The page as HTML, with its security policy.
#[must_use]
pub fn strict(page: &Strict<'_>) -> String {
    let style = format!("{UPLOT_CSS}\n{REPORT_CSS}\n{}", page.style);
    let uplot = format!("\n/*\n{}\n*/\n{UPLOT_JS}\n", UPLOT_LICENCE.trim_end());
    let policy = format!(
        "default-src 'none'; script-src {} {} {}; style-src {}; img-src data: blob:; {} \
         base-uri 'none'; form-action 'none'",
        hash(&uplot),
        hash(page.script),
        page.scripts_may,
        hash(&style),
        page.policy,
    );
    let (title, version) = (escape(page.title), escape(page.version));
    [
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"",
        &escape(&policy),
        "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <meta name=\"generator\" content=\"xcpnet ",
        &version,
        "\">\n<title>",
        &title,
        "</title>\n<style>",
        &style,
        "</style>\n</head>\n<body>\n",
        page.body,
        "<script>",
        &uplot,
        "</script>\n<script>",
        page.script,
        "</script>\n</body>\n</html>\n",
    ]
    .concat()
}

/// How a policy names an inline script or style (CSP Level 3, §2.3.1).
pub(crate) fn hash(text: &str) -> String {
    format!("'sha256-{}'", base64(Sha256::digest(text.as_bytes()).iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_policy() {
        // echo -n "alert('Hello, world.');" | openssl dgst -sha256 -binary | openssl base64
        assert_eq!(
            hash("alert('Hello, world.');"),
            "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='"
        );
    }
}
