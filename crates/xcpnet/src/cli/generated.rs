//! What is made from the definition of the command line: completions for shells, manual pages.

use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Cli;
use crate::failure::Failure;

/// The completions of a shell, as it reads them.
pub fn completions(shell: Shell) -> String {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "xcpnet", &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes a manual page for the program and for each command and subcommand into a directory,
/// which is made if it is not there: `xcpnet.1`, `xcpnet-run.1`, `xcpnet-router-add.1`.
///
/// # Errors
/// The directory cannot be written.
pub fn manual(directory: &Path) -> Result<(), Failure> {
    let told = |e: std::io::Error| {
        let directory = directory.display();
        Failure::new(format!(
            "cannot write manual pages into {directory}: {e}; give a directory, which is made if \
             need be, in which you may write"
        ))
    };
    std::fs::create_dir_all(directory).map_err(told)?;
    clap_mangen::generate_to(Cli::command(), directory).map_err(told)
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
        assert!(manual(Path::new("/proc/none/man")).is_err());
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
