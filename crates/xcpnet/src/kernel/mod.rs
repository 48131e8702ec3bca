//! The commands for this machine's kernel: `xcpnet router`, `xcpnet endpoint` and `xcpnet doctor`,
//! what they do is `xcp_linux`'s; `xcpnet pep`, which is `xcp_pep`'s; runs on it, which are
//! `xcp_lab`'s; and `xcpnet serve`, which shows it. Here are words, tables and JSON.

pub mod doctor;
pub mod endpoint;
pub mod lab;
pub mod pep;
pub mod router;
pub mod serve;

use std::time::Duration;

use xcp_linux::namespace::Namespace;

use crate::failure::Failure;
use crate::interrupt;
use crate::output::Printer;

/// What the system does not allow or lacks.
impl From<xcp_linux::Error> for Failure {
    fn from(error: xcp_linux::Error) -> Self {
        Self::new(error)
    }
}

/// The namespace a command is about.
fn namespace(name: Option<&str>) -> Result<Namespace, Failure> {
    match name {
        None => Namespace::current().map_err(Failure::new),
        Some(name) => Namespace::named(name).map_err(Failure::new),
    }
}

/// Refuses early what would fail late.
fn need_root() -> Result<(), Failure> {
    if xcp_linux::error::is_root() {
        Ok(())
    } else {
        Err(Failure::new("this needs root; run it with sudo"))
    }
}

/// Prints once, or every second until Ctrl-C, or until nobody reads it any more.
fn watched(
    watch: bool,
    printer: &mut Printer,
    mut text: impl FnMut() -> Result<String, Failure>,
) -> Result<(), Failure> {
    if !watch {
        return printer.text(&text()?);
    }
    interrupt::listen()?;
    let terminal = console::Term::stdout();
    while !interrupt::asked() && !printer.is_closed() {
        let text = text()?;
        if terminal.is_term() {
            let _ = terminal.clear_screen();
        }
        printer.text(&text)?;
        let mut left = 10;
        while left > 0 && !interrupt::asked() {
            std::thread::sleep(Duration::from_millis(100));
            left -= 1;
        }
    }
    Ok(())
}
