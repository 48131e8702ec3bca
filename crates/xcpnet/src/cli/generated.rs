//! What is made from the definition of the command line: completions for shells, manual pages.

use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;
use xcp_report::files::{Staged, WriteError, reason};

use super::Cli;
use crate::failure::Failure;

/// The completions of a shell, as it reads them.
pub fn completions(shell: Shell) -> String {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "xcpnet", &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes a manual page for the program and for each command and subcommand into a directory,
/// which is made if it is not there: `xcpnet.1`, `xcpnet-run.1`, `xcpnet-router-add.1`. They appear
/// together.
///
/// # Errors
/// The directory cannot be written.
pub fn manual(directory: &Path) -> Result<(), Failure> {
    let mut staged = Staged::new(directory).map_err(|e| {
        Failure::new(format!(
            "cannot write manual pages into {}: {}; give a directory that you may write to; it is \
             created if it does not exist",
            directory.display(),
            reason(&e.source)
        ))
    })?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    write(&command, &mut staged)?;
    Ok(staged.commit()?)
}

fn write(command: &Command, staged: &mut Staged) -> Result<(), WriteError> {
    for part in command.get_subcommands().filter(|part| !part.is_hide_set()) {
        write(part, staged)?;
    }
    let page = Man::new(command.clone());
    staged.write_with(page.get_filename(), |file| page.render(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let directory = tempfile::tempdir().unwrap();
        manual(&directory.path().join("man")).unwrap();
        let page =
            |name: &str| std::fs::read_to_string(directory.path().join("man").join(name)).unwrap();
        assert!(page("xcpnet.1").contains("explicit") || page("xcpnet.1").contains("Explicit"));
        assert!(page("xcpnet-run.1").contains(".TH xcpnet-run 1"), "{}", page("xcpnet-run.1"));
        #[cfg(target_os = "linux")]
        assert!(page("xcpnet-router-add.1").contains("own\\-rtt"));
        let refused = |path: &Path| manual(path).unwrap_err().to_string();
        let told = refused(Path::new("/proc/none/man"));
        assert!(told.contains("; give a directory that you may write to"), "{told}");
        let told = refused(&directory.path().join("man/xcpnet.1"));
        assert!(told.contains(": a part of the path is a file, not a directory; give"), "{told}");
    }

    /// The words of the law's choices reach the shells.
    #[cfg(target_os = "linux")]
    #[test]
    fn shells_complete_the_choices_of_a_law() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            assert!(completions(shell).contains("minus-other"), "{shell}");
        }
    }
}
