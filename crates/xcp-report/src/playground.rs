//! A page in which scenarios run: the reader and the simulator as WebAssembly, in one file that
//! needs no network. Assembles it; what it does is in `assets/playground.js`, what the engine can
//! be asked in `xcp-wasm`. Whatever a scenario's text or an address brings, no other script runs
//! and nothing is fetched ([`crate::strict`]).

use crate::html::{FIGURE_JS, Source, base64, escape, script_safe};
use crate::strict::{Strict, strict};

const PAGE_JS: &str = include_str!("../assets/playground.js");
const WORKER_JS: &str = include_str!("../assets/playground-worker.js");
const PAGE_CSS: &str = include_str!("../assets/playground.css");
const PAGE_HTML: &str = include_str!("../assets/playground.html");

/// What a page is made of.
#[derive(Debug, Clone, Copy)]
pub struct Playground<'a> {
    /// The scenario that it begins with.
    pub source: &'a Source,
    /// The scenario's title.
    pub title: &'a str,
    /// The engine as `make wasm` builds it: WebAssembly, compressed by gzip.
    pub engine: &'a [u8],
    /// The version of the program.
    pub version: &'a str,
}

/// The page.
#[must_use]
pub fn playground(page: &Playground<'_>) -> String {
    let data = serde_json::json!({
        "name": page.source.name,
        "text": page.source.text,
        "version": page.version,
        "worker": WORKER_JS,
    });
    let body = [
        &PAGE_HTML.replace("{title}", &escape(page.title)),
        "<script type=\"application/json\" id=\"playground-data\">",
        &script_safe(&data.to_string()),
        "</script>\n<script type=\"application/octet-stream\" id=\"playground-engine\">",
        &base64(page.engine.iter().copied()),
        "</script>\n",
    ]
    .concat();
    strict(&Strict {
        title: page.title,
        version: page.version,
        scripts_may: "'wasm-unsafe-eval'",
        policy: "worker-src blob:;",
        style: PAGE_CSS,
        body: &body,
        script: &[FIGURE_JS, PAGE_JS].concat(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_scenario_becomes_markup() {
        let hostile = "</script><script>stolen=1</script><img src=x onerror=stolen=1>";
        let source = Source { name: hostile.into(), text: hostile.into() };
        let page =
            playground(&Playground { source: &source, title: hostile, engine: &[], version: "1" });
        assert_eq!(page.matches("<script").count(), 4, "data, engine, uPlot and the page's own");
        assert!(!page.contains("<img"));
    }
}
