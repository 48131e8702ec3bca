//! `xcpnet theory`: what theory says of scenarios, in tables or as JSON. The theory is in
//! `xcp-theory`.

mod calendar;
mod reach;
mod show;

use xcp_report::human;
use xcp_scenario::{Overrides, load, read_text};
use xcp_sweep::chosen_variants;
use xcp_theory::said::say;

use crate::cli::TheoryArguments;
use crate::failure::Failure;
use crate::output::{Printer, width};

/// Says it.
pub fn theory(arguments: &TheoryArguments, printer: &mut Printer) -> Result<(), Failure> {
    let text = read_text(&arguments.file, &arguments.settings)?;
    chosen_variants(&arguments.file, &text, &arguments.variants)?;
    let mut overrides = Overrides::none();
    for (path, value) in &arguments.settings {
        overrides = overrides.with(path, value);
    }
    let scenarios = load(&arguments.file, &text, &overrides.only(&arguments.variants))?;
    for (i, scenario) in scenarios.iter().enumerate() {
        if let Some(at) = arguments.at.filter(|at| *at > scenario.duration) {
            return Err(Failure::new(format!(
                "--at: the run ends at {}; give an earlier instant, or `--set duration={}s` as \
                 well",
                human::seconds(scenario.duration as f64 / 1e9),
                at as f64 / 1e9
            )));
        }
        let said = say(scenario, arguments.at, !arguments.no_fluid);
        if arguments.json {
            printer
                .line(&serde_json::to_string(&said).map_err(|e| Failure::new(e.to_string()))?)?;
        } else {
            let gap = if i > 0 { "\n" } else { "" };
            printer.text(&format!("{gap}{}", show::text(&said, width())))?;
        }
    }
    Ok(())
}
