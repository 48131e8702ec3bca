//! A page in which scenarios run: the reader and the simulator as WebAssembly, in one file that
//! needs no network. Assembles it; what it does is in `assets/playground.js` and the files that it
//! uses, what the engine can be asked in `xcp-wasm`. Whatever a scenario's text or an address
//! brings, no other script runs and nothing is fetched ([`crate::strict`]).

use crate::html::{FIGURE_JS, NUMBERS_JS, Source, base64, escape, script_safe};
use crate::strict::{Strict, strict};

/// The page's script, in one piece; each part uses only what is before it.
const SCRIPT: [&str; 8] = [
    FIGURE_JS,
    NUMBERS_JS,
    include_str!("../assets/playground-page.js"),
    include_str!("../assets/playground-engine.js"),
    include_str!("../assets/playground-address.js"),
    include_str!("../assets/playground-packets.js"),
    include_str!("../assets/playground-charts.js"),
    include_str!("../assets/playground.js"),
];
const WORKER_JS: &str = include_str!("../assets/playground-worker.js");
const PAGE_CSS: &str = include_str!("../assets/playground.css");
const PAGE_HTML: &str = include_str!("../assets/playground.html");

/// What a page is made of.
#[derive(Debug, Clone, Copy)]
pub struct Playground<'a> {
    /// The scenarios to choose from, one at least; the page begins with the first, or with the one
    /// whose number its address has: `#f=1` is the second.
    pub sources: &'a [Source],
    /// The title until a scenario is read, which has its own.
    pub title: &'a str,
    /// The engine as `make wasm` builds it: WebAssembly, compressed by gzip.
    pub engine: &'a [u8],
    /// The version of the program.
    pub version: &'a str,
}

/// The playground page as HTML.
#[must_use]
pub fn playground(page: &Playground<'_>) -> String {
    let source = |source: &Source| serde_json::json!({"name": source.name, "text": source.text});
    let data = serde_json::json!({
        "sources": page.sources.iter().map(source).collect::<Vec<_>>(),
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
        script: &SCRIPT.concat(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_scenario_becomes_markup() {
        let hostile = "</script><script>stolen=1</script><img src=x onerror=stolen=1>";
        let sources = [Source { name: hostile.into(), text: hostile.into() }];
        let page = playground(&Playground {
            sources: &sources,
            title: hostile,
            engine: &[],
            version: "1",
        });
        assert_eq!(page.matches("<script").count(), 4, "data, engine, uPlot and the page's own");
        assert!(!page.contains("<img"));
    }
}
