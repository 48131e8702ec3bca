//! `--config FILE` of `endpoint enable` and `router add`: options from a TOML file, whose keys are
//! the options' names. What the command line says itself goes before what the file says.

use std::ffi::OsString;
use std::path::Path;

use clap::{Arg, ArgAction, Command};
use toml::Value;
use xcp_pep::options::file::{Entry, entries};

use super::given::{Given, one_of};
use crate::failure::Failure;

/// The commands that take one.
const COMMANDS: [[&str; 2]; 2] = [["endpoint", "enable"], ["router", "add"]];
const FLAG: &str = "--config";

/// A command line with the options of its file, if it names one, written out as flags.
///
/// # Errors
/// The file cannot be read, or does not hold options of the command.
pub fn written_out(cli: &Command, line: Vec<OsString>) -> Result<(Vec<OsString>, Given), Failure> {
    let mut from = Given::default();
    let named = |words: [&str; 2]| line.get(1..3).is_some_and(|given| given == words);
    let Some(words) = COMMANDS.into_iter().find(|words| named(*words)) else {
        return Ok((line, from));
    };
    let command = words.iter().try_fold(cli, |c, name| c.find_subcommand(name));
    let Some(command) = command else { return Ok((line, from)) };
    let mut rest = Vec::new();
    let mut file = None;
    let mut given = line.into_iter();
    while let Some(word) = given.next() {
        match word.to_str() {
            Some(FLAG) => {
                file = Some(
                    given
                        .next()
                        .ok_or_else(|| Failure::new("--config needs the name of a file"))?,
                )
            }
            Some(text) if text.starts_with("--config=") => {
                file = Some(OsString::from(&text[FLAG.len() + 1..]));
            }
            _ => rest.push(word),
        }
    }
    let Some(file) = file else { return Ok((rest, from)) };
    for entry in entries(Path::new(&file))? {
        let known = || {
            command
                .get_arguments()
                .filter_map(|option| Some((option, option.get_long()?)))
                .filter(|(_, name)| !["config", "help"].contains(name))
        };
        let Some((option, _)) = known().find(|(_, name)| *name == entry.key) else {
            let names: Vec<&str> = known().map(|(_, name)| name).collect();
            return Err(Failure::new(entry.unknown(names)));
        };
        let flag = format!("--{}", entry.key);
        let said = |word: &OsString| {
            let word = word.to_string_lossy();
            word == flag.as_str() || word.starts_with(&format!("{flag}="))
        };
        if !rest.iter().any(said) {
            rest.extend(flags(option, &flag, &entry)?);
            from.add(entry.key, entry.place);
        }
    }
    Ok((rest, from))
}

/// What an option is on the command line with a value of the file.
fn flags(option: &Arg, flag: &str, entry: &Entry) -> Result<Vec<OsString>, Failure> {
    let wrong = |why: String| Failure::new(entry.wrong(why));
    let one = |value: &Value| match value {
        Value::String(text) => Ok(format!("{flag}={text}").into()),
        Value::Integer(n) => Ok(format!("{flag}={n}").into()),
        Value::Float(n) => Ok(format!("{flag}={n}").into()),
        _ => {
            let words = option.get_possible_values();
            Err(wrong(if words.is_empty() {
                "write a number, or a text in quotes".to_owned()
            } else {
                format!("write {}", one_of(words.iter().map(|word| word.get_name())))
            }))
        }
    };
    match (option.get_action(), &entry.value) {
        (ArgAction::SetTrue, Value::Boolean(true)) => Ok(vec![flag.into()]),
        (ArgAction::SetTrue, Value::Boolean(false)) => Ok(Vec::new()),
        (ArgAction::SetTrue, _) => Err(wrong("write true or false".into())),
        (ArgAction::Append, Value::Array(values)) => values.iter().map(one).collect(),
        (_, value) => Ok(vec![one(value)?]),
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
        let told = |e: Failure| e.to_string().replace(path.to_str().unwrap(), "x.toml");
        let (out, from) = written_out(&Cli::command(), line).map_err(told)?;
        Cli::try_parse_from(&out)
            .map_err(|e| from.refused(&e).map_or_else(|| e.to_string(), told))?;
        Ok(out[3..].iter().map(|w| w.to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn a_file_says_what_flags_say() {
        let file = "port = [80, 443]\nno-pacing = true\nids = false\nfallback = \"cubic\"\n";
        let flags = line("xcpnet endpoint enable --config FILE", file).unwrap();
        assert_eq!(flags, ["--port=80", "--port=443", "--no-pacing", "--fallback=cubic"]);
        let file = "capacity = \"10mbit\"\ngamma = 0.2\noverhead = 38\n";
        let flags = line("xcpnet router add --config=FILE --dev=eth0 --gamma=0.1", file).unwrap();
        assert_eq!(flags, ["--dev=eth0", "--gamma=0.1", "--capacity=10mbit", "--overhead=38"]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_file() {
        for (file, why) in [
            ("prot = 80\n", "x.toml:1: there is no option `prot`; did you mean `port`?"),
            ("ids = \"yes\"\n", "x.toml:1: `ids`: write true or false"),
            ("ids =\n", "x.toml:1: "),
            ("config = \"y\"\n", "x.toml:1: there is no option `config`"),
            ("\nport = [\"many\"]\n", "x.toml:2: port: \"many\" is not possible here; write the"),
            ("port = [[1]]\n", "x.toml:1: `port`: write a number, or a text in quotes"),
            ("sender = true\n", "x.toml:1: `sender`: write \"robust\" or \"xcp\""),
            (
                "sender = \"x\"\n",
                "x.toml:1: sender: \"x\" is not possible here; write \"robust\" or",
            ),
        ] {
            let told = line("xcpnet endpoint enable --config FILE", file).unwrap_err();
            assert!(told.starts_with(why), "{file}: {told}");
        }
        let told = line("xcpnet endpoint enable --config /nowhere/x.toml", "").unwrap_err();
        assert!(told.contains("/nowhere/x.toml: there is no such file; check"), "{told}");
        assert!(
            line("xcpnet endpoint enable --config", "").unwrap_err().contains("needs the name")
        );
    }
}
