//! `--config FILE` of `endpoint enable` and `router add`: options from a TOML file, whose keys are
//! the options' names. What the command line says itself goes before what the file says.

use std::ffi::OsString;
use std::path::Path;

use clap::{Arg, ArgAction, Command};
use toml::{Table, Value};

use crate::failure::Failure;

/// The commands that take one.
const COMMANDS: [[&str; 2]; 2] = [["endpoint", "enable"], ["router", "add"]];
const FLAG: &str = "--config";

/// A command line with the options of its file, if it names one, written out as flags.
///
/// # Errors
/// The file cannot be read, or does not hold options of the command.
pub fn written_out(cli: &Command, line: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    let named = |words: [&str; 2]| line.get(1..3).is_some_and(|given| given == words);
    let Some(words) = COMMANDS.into_iter().find(|words| named(*words)) else { return Ok(line) };
    let command = words.iter().try_fold(cli, |c, name| c.find_subcommand(name));
    let Some(command) = command else { return Ok(line) };
    let mut rest = Vec::new();
    let mut file = None;
    let mut given = line.into_iter();
    while let Some(word) = given.next() {
        match word.to_str() {
            Some(FLAG) => {
                file = Some(
                    given
                        .next()
                        .ok_or_else(|| Failure::new("--config: the name of a file is to follow"))?,
                )
            }
            Some(text) if text.starts_with("--config=") => {
                file = Some(OsString::from(&text[FLAG.len() + 1..]));
            }
            _ => rest.push(word),
        }
    }
    let Some(file) = file else { return Ok(rest) };
    let path = Path::new(&file);
    let told = |what: String| Failure::new(format!("{}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| told(e.to_string()))?;
    let table: Table = text.parse().map_err(|e: toml::de::Error| told(e.to_string()))?;
    for (key, value) in &table {
        let option = command.get_arguments().find(|a| a.get_long() == Some(key));
        let Some(option) = option.filter(|a| a.get_long() != Some(&FLAG[2..])) else {
            let known: Vec<&str> = command
                .get_arguments()
                .filter_map(Arg::get_long)
                .filter(|name| !["config", "help"].contains(name))
                .collect();
            return Err(told(format!(
                "`{key}` is not an option of `xcpnet {}`; there are {}",
                words.join(" "),
                known.join(", ")
            )));
        };
        let flag = format!("--{key}");
        let said = |word: &OsString| {
            let word = word.to_string_lossy();
            word == flag.as_str() || word.starts_with(&format!("{flag}="))
        };
        if !rest.iter().any(said) {
            rest.extend(flags(option, &flag, value).map_err(|e| told(format!("`{key}`: {e}")))?);
        }
    }
    Ok(rest)
}

/// What an option is on the command line with a value of the file.
fn flags(option: &Arg, flag: &str, value: &Value) -> Result<Vec<OsString>, String> {
    let one = |value: &Value| match value {
        Value::String(text) => Ok(format!("{flag}={text}").into()),
        Value::Integer(n) => Ok(format!("{flag}={n}").into()),
        Value::Float(n) => Ok(format!("{flag}={n}").into()),
        _ => Err("write a text or a number".to_owned()),
    };
    match (option.get_action(), value) {
        (ArgAction::SetTrue, Value::Boolean(true)) => Ok(vec![flag.into()]),
        (ArgAction::SetTrue, Value::Boolean(false)) => Ok(Vec::new()),
        (ArgAction::SetTrue, _) => Err("write true or false".into()),
        (ArgAction::Append, Value::Array(values)) => values.iter().map(one).collect(),
        _ => Ok(vec![one(value)?]),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;

    fn line(words: &str, file: &str) -> Result<Vec<String>, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.toml");
        std::fs::write(&path, file).unwrap();
        let words = words.replace("FILE", path.to_str().unwrap());
        let line = words.split_whitespace().map(OsString::from).collect();
        let out = written_out(&Cli::command(), line).map_err(|e| e.to_string())?;
        Cli::try_parse_from(&out).map_err(|e| e.to_string())?;
        Ok(out[3..].iter().map(|w| w.to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn a_file_says_what_flags_say() {
        let file = "port = [80, 443]\nno-pacing = true\nids = false\nfallback = \"cubic\"\n";
        let flags = line("xcpnet endpoint enable --config FILE", file).unwrap();
        assert_eq!(flags, ["--fallback=cubic", "--no-pacing", "--port=80", "--port=443"]);
        let file = "capacity = \"10mbit\"\ngamma = 0.2\noverhead = 38\n";
        let flags = line("xcpnet router add --config=FILE --dev=eth0 --gamma=0.1", file).unwrap();
        assert_eq!(flags, ["--dev=eth0", "--gamma=0.1", "--capacity=10mbit", "--overhead=38"]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_file() {
        for (file, why) in [
            (
                "prot = 80\n",
                "`prot` is not an option of `xcpnet endpoint enable`; there are cgroup",
            ),
            ("ids = \"yes\"\n", "x.toml: `ids`: write true or false"),
            ("ids =\n", "x.toml: TOML parse error at line 1"),
            ("config = \"y\"\n", "`config` is not an option"),
            ("port = [\"many\"]\n", "invalid value 'many' for '--port"),
        ] {
            let told = line("xcpnet endpoint enable --config FILE", file).unwrap_err();
            assert!(told.contains(why), "{file}: {told}");
        }
        let told = line("xcpnet endpoint enable --config /nowhere/x.toml", "").unwrap_err();
        assert!(told.contains("/nowhere/x.toml: No such file"), "{told}");
        assert!(line("xcpnet endpoint enable --config", "").unwrap_err().contains("is to follow"));
    }
}
