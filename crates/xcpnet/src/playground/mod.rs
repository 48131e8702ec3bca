//! `xcpnet playground`: one page in which a scenario can be changed and run. The page is the
//! report's ([`xcp_report::playground()`]), its engine `make wasm`'s.

use std::borrow::Cow;
use std::path::Path;

use xcp_report::files::{Staged, reason};
use xcp_report::{Playground, Source, playground};
use xcp_scenario::{Overrides, load, read_text};

use crate::cli::PlaygroundArguments;
use crate::failure::Failure;
use crate::plot::place;
use crate::terminal;

include!(concat!(env!("OUT_DIR"), "/engine.rs"));

/// What the page begins with if nothing else is named.
pub const EXAMPLE: &str = include_str!("four-flows.toml");

/// Name of the page beside a report.
pub const PAGE: &str = "playground.html";

/// Where, seen from a report, the scenario of that number can be changed and run; `way`: to the
/// page's directory, empty or ending in a slash.
pub fn address(way: &str, number: usize) -> String {
    if number == 0 { format!("{way}{PAGE}") } else { format!("{way}{PAGE}#f={number}") }
}

/// Writes the page.
pub fn write(arguments: &PlaygroundArguments) -> Result<(), Failure> {
    let source = match &arguments.file {
        Some(file) => Source { name: file.display().to_string(), text: read_text(file, &[])? },
        None => Source { name: "four-flows.toml".into(), text: EXAMPLE.into() },
    };
    let (dir, name) = place(&arguments.out)?;
    let scenarios = load(Path::new(&source.name), &source.text, &Overrides::none())?;
    let title = scenarios.first().map_or("", |scenario| scenario.title.as_str());
    let engine = engine(arguments.engine.as_deref())?;
    let mut staged = Staged::new(&dir)?;
    staged.write(&name, page(&[source], title, &engine).as_bytes())?;
    staged.commit()?;
    terminal::tell(&format!("wrote {}", arguments.out.display()));
    Ok(())
}

/// The page of scenarios that are right; the title stands until one of them is read.
pub fn page(sources: &[Source], title: &str, engine: &[u8]) -> String {
    playground(&Playground { sources, title, engine, version: env!("CARGO_PKG_VERSION") })
}

/// The engine in a file, or else this program's.
fn engine(file: Option<&Path>) -> Result<Cow<'static, [u8]>, Failure> {
    match (file, ENGINE) {
        (Some(path), _) => {
            let engine = std::fs::read(path).map_err(|e| {
                Failure::new(format!(
                    "--engine {}: this file cannot be read: {}",
                    path.display(),
                    reason(&e)
                ))
            })?;
            if !engine.starts_with(&[0x1f, 0x8b]) {
                return Err(Failure::new(format!(
                    "--engine {}: this is not an engine built by `make wasm`",
                    path.display()
                )));
            }
            Ok(engine.into())
        }
        (None, Some(engine)) => Ok(engine.into()),
        (None, None) => Err(Failure::new(
            "this program was built without the engine that runs in pages; to build one with it, \
             run `rustup target add wasm32-unknown-unknown` and then `make build` in xcpnet's \
             source",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_right() {
        let scenarios = load(Path::new("x"), EXAMPLE, &Overrides::none()).unwrap();
        assert_eq!(scenarios.len(), 2);
        assert_eq!(scenarios[0].flows.len(), 4);
    }
}
