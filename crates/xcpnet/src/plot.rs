//! `xcpnet plot`: runs scenarios and draws one figure of them. What figures show and how they look
//! is the report's; what is run and how, `run`'s.

use std::path::{Path, PathBuf};

use xcp_report::files::Staged;
use xcp_report::plot::{Figure, Kind, Wanted, figure};

use crate::cli::{FigureKind, PlotArguments};
use crate::failure::{Failure, INTERRUPTED};
use crate::run::carry_out;
use crate::terminal;

/// How a figure is written down.
type Format = fn(&Figure) -> Vec<u8>;

/// Draws what was asked for.
pub fn plot(arguments: &PlotArguments) -> Result<(), Failure> {
    let format = format(&arguments.out)?;
    let (dir, name) = place(&arguments.out)?;
    // Whether it can be written is asked before the work, not after it.
    drop(Staged::new(&dir)?);
    let wanted = Wanted {
        kind: match arguments.figure {
            FigureKind::Series => Kind::Series,
            FigureKind::Cdf => Kind::Cdf,
            FigureKind::Completion => Kind::Completion,
            FigureKind::Delay => Kind::Delay,
        },
        quantity: arguments.quantity.as_deref(),
        link: arguments.link.as_deref(),
    };
    let series = wanted.kind == Kind::Series;
    refuse_what_means_nothing(&wanted)?;
    let carried = carry_out(&arguments.what, series, |scenarios| {
        wanted.check(scenarios).map_err(Failure::new)
    })?;
    if carried.interrupted() {
        let what = format!("interrupted; nothing was written to {}", arguments.out.display());
        return Err(Failure::with_status(what, INTERRUPTED));
    }
    let figure = figure(&carried.runs, &carried.scenarios, &wanted).map_err(Failure::new)?;
    let mut staged = Staged::new(&dir)?;
    staged.write(&name, &format(&figure))?;
    staged.commit()?;
    terminal::tell(&format!("wrote {}", arguments.out.display()));
    Ok(())
}

fn refuse_what_means_nothing(wanted: &Wanted<'_>) -> Result<(), Failure> {
    let fail = |what: &str| Err(Failure::new(what.to_owned()));
    match wanted {
        Wanted { link: Some(_), kind: Kind::Cdf | Kind::Completion | Kind::Delay, .. } => {
            fail("--link only works with --figure series: the other figures show flows")
        }
        Wanted { quantity: Some(_), kind: Kind::Completion | Kind::Delay, .. } => {
            fail("--quantity only works with --figure series or cdf")
        }
        _ => Ok(()),
    }
}

fn format(out: &Path) -> Result<Format, Failure> {
    match out.extension().and_then(|end| end.to_str()) {
        Some("svg") => Ok(|figure| figure.svg().into_bytes()),
        Some("pdf") => Ok(Figure::pdf),
        _ => {
            Err(Failure::new(format!("--out {}: the name must end in .svg or .pdf", out.display())))
        }
    }
}

/// The directory and the file's name.
pub fn place(out: &Path) -> Result<(PathBuf, PathBuf), Failure> {
    if out.is_dir() {
        return Err(Failure::new(format!(
            "--out {}: this is a directory; write the name of a file",
            out.display()
        )));
    }
    let dir = out.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = out
        .file_name()
        .ok_or_else(|| Failure::new("--out: write the name of a file".to_owned()))?;
    Ok((dir.to_owned(), name.into()))
}
