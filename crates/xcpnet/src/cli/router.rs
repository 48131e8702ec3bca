//! The command line of `router`: one table of settings, from which come flags, help and
//! completions. tc's way of writing them (`dev eth0 capacity 10mbit`) is taken as well.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, Subcommand};
use xcp_law::{KEYS, Preset, Takes};

use super::whole;
use crate::failure::Failure;

/// Arguments of `router`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  xcpnet router add --dev eth2 --capacity 10mbit
  xcpnet router add --dev eth2 --capacity 10mbit --limit 2bdp --rtt 600ms --overhead 4
  xcpnet router add --dev tun0 --capacity 1gbit --shaper none   something else sets the rate
  xcpnet router change --dev eth2 --capacity 8mbit
  xcpnet router show --dev eth2 --watch
  xcpnet router del --dev eth2
Settings can also be written as tc's are: xcpnet router add dev eth2 capacity 10mbit")]
pub struct RouterArguments {
    #[command(subcommand)]
    pub command: RouterCommand,
}

/// What to do with routers.
#[derive(Debug, Subcommand)]
pub enum RouterCommand {
    /// Put a router at a device's egress, and a shaper behind it
    Add {
        #[command(flatten)]
        settings: AddSettings,
        /// Read options from a TOML file: `capacity = "10mbit"`, `law = "xcp"`
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Work in this network namespace, given by name or path
        #[arg(long, value_name = "NAME")]
        netns: Option<String>,
    },
    /// Change a router's capacity and the rate of the shaper that came with it, or its queue's
    /// limit
    Change {
        #[command(flatten)]
        settings: ChangeSettings,
        /// Work in this network namespace, given by name or path
        #[arg(long, value_name = "NAME")]
        netns: Option<String>,
    },
    /// Remove a router and the shaper that came with it
    Del {
        /// The device
        #[arg(long, value_name = "NAME")]
        dev: String,
        /// Work in this network namespace, given by name or path
        #[arg(long, value_name = "NAME")]
        netns: Option<String>,
    },
    /// Show what routers are doing
    Show {
        /// Show only this device's router
        #[arg(long, value_name = "NAME")]
        dev: Option<String>,
        /// Work in this network namespace, given by name or path
        #[arg(long, value_name = "NAME")]
        netns: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Show it again every second, until Ctrl-C
        #[arg(long, short)]
        watch: bool,
    },
}

/// A setting of `router add`.
struct Setting {
    name: &'static str,
    takes: Value,
    required: bool,
    help: &'static str,
}

/// What a setting takes.
enum Value {
    /// Something read later; this is what help calls it.
    Text(&'static str),
    /// One of some words.
    Word(&'static [&'static str]),
}

const fn text(name: &'static str, value: &'static str, help: &'static str) -> Setting {
    Setting { name, takes: Value::Text(value), required: false, help }
}

const fn word(name: &'static str, words: &'static [&'static str], help: &'static str) -> Setting {
    Setting { name, takes: Value::Word(words), required: false, help }
}

const fn required(setting: Setting) -> Setting {
    Setting { required: true, ..setting }
}

const DEVICE: Setting = required(text("dev", "NAME", "The device"));
const LIMIT: Setting = text(
    "limit",
    "LENGTH",
    "How long the shaper's queue may become: packets (100), bytes (64kb) or 2bdp [default: 1000 \
     packets]",
);
const RTT: Setting = text(
    "rtt",
    "TIME",
    "Round-trip time of the longest path, on which `bdp` is based [default: 100ms]",
);

/// The settings of `router add`, before those of the law.
const ADD: &[Setting] = &[
    DEVICE,
    required(text("capacity", "RATE", "The rate that XCP may fill, e.g. 10mbit")),
    word(
        "shaper",
        &["htb", "tbf", "none"],
        "What limits the rate; none if the device or somebody else's shaper does [default: htb]",
    ),
    LIMIT,
    RTT,
    word(
        "law",
        Preset::WORDS,
        "The law that the keys below change [default: robust; xcp with `police`, `others`, or a \
         key that `robust` does not have]",
    ),
    word(
        "others",
        &["shared", "first", "last", "fair", "split"],
        "Where packets that are not XCP's wait: with XCP's (shared), or in a queue of their own \
         that is served first, last, or in shares (fair); with split, also in shares, and XCP \
         leaves them theirs even when it is unused [default: shared]",
    ),
    text("share", "N", "XCP's share with `--others fair` or `split` [default: 0.5]"),
    word(
        "police",
        &["on", "off"],
        "Whether to police senders, so that nobody gains by lying or by ignoring feedback \
         [default: off]",
    ),
    text(
        "police-flows",
        "N",
        "Number of flows that the policer's table can hold at a time, 112 bytes each [default: \
         4096]",
    ),
    word(
        "police-by",
        &["flow", "address", "prefix"],
        "Which packets the policer counts together as one flow [default: flow]",
    ),
    text(
        "police-prefix",
        "N,M",
        "How many bits of an IPv4 and of an IPv6 source address make the prefix of \
         `--police-by prefix` [default: 24,64]",
    ),
    word(
        "hook",
        &["tcx", "clsact"],
        "Where to attach the program [default: tcx if the kernel has \
        it]",
    ),
    text(
        "seed",
        "N",
        "Seed of the random rounding of feedback, and of the link's id [default: random]",
    ),
];

/// The settings of `router change`.
const CHANGE: &[Setting] =
    &[DEVICE, text("capacity", "RATE", "The rate that XCP may fill from now on"), LIMIT, RTT];

/// The law's keys that `router add` takes as they are: the preset is its `law`, the capacity its
/// own; which kind of law it is the preset says, and no kernel program can measure a capacity.
pub fn law_keys() -> impl Iterator<Item = &'static xcp_law::Key> {
    KEYS.iter().filter(|key| {
        !matches!(key.takes, Takes::Preset | Takes::Capacity)
            && !matches!(key.name, "control" | "capacity-known")
    })
}

/// Settings as they were written, each at most once.
#[derive(Debug, Clone, Default)]
pub struct Settings(Vec<(&'static str, String)>);

impl Settings {
    /// A value as it was typed.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_str())
    }

    /// A value read by a function.
    pub fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Failure> {
        self.text(name).map(read).transpose().map_err(|e| Failure::new(format!("{name}: {e}")))
    }

    /// What one of some words stands for. (That it is one of them is the command line's to see.)
    pub fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Option<T> {
        let word = self.text(name)?;
        choices.iter().find(|(known, _)| *known == word).map(|(_, choice)| *choice)
    }

    /// A number.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Failure> {
        self.read(name, number)
    }

    fn from_matches(matches: &ArgMatches, names: impl Iterator<Item = &'static str>) -> Self {
        let given = |name| matches.get_one::<String>(name).map(|value| (name, value.clone()));
        Self(names.filter_map(given).collect())
    }
}

/// A setting that is a whole number.
pub fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    whole(text).map_err(|why| format!("\"{text}\" is not possible here; {why}"))
}

fn argument(setting: &Setting) -> Arg {
    let arg =
        Arg::new(setting.name).long(setting.name).required(setting.required).help(setting.help);
    match setting.takes {
        Value::Text(value) => arg.value_name(value),
        Value::Word(words) => arg.value_name("WORD").value_parser(PossibleValuesParser::new(words)),
    }
}

fn law_argument(key: &'static xcp_law::Key) -> Arg {
    let arg = Arg::new(key.name).long(key.name).help(key.doc).help_heading("Choices of the law");
    match key.takes {
        Takes::Bool(_) => {
            arg.value_name("WORD").value_parser(PossibleValuesParser::new(["on", "off"]))
        }
        Takes::Word { words, .. } => {
            arg.value_name("WORD").value_parser(PossibleValuesParser::new(words))
        }
        Takes::Bytes { .. } => arg.value_name("BYTES"),
        Takes::Time(_) => arg.value_name("TIME"),
        Takes::Queue => arg.value_name("LENGTH"),
        Takes::Fraction(_) | Takes::Count(_) | Takes::Preset | Takes::Capacity => {
            arg.value_name("N")
        }
    }
}

/// Declares the settings of a command as clap has them.
macro_rules! settings {
    ($(#[doc = $doc:literal])+ $name:ident, $own:ident, $law:expr) => {
        $(#[doc = $doc])+
        #[derive(Debug)]
        pub struct $name(pub Settings);

        impl Args for $name {
            fn augment_args(command: Command) -> Command {
                command.args($own.iter().map(argument)).args($law.map(law_argument))
            }

            fn augment_args_for_update(command: Command) -> Command {
                Self::augment_args(command)
            }
        }

        impl FromArgMatches for $name {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                let names = $own.iter().map(|s| s.name).chain($law.map(|key| key.name));
                Ok(Self(Settings::from_matches(matches, names)))
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }
    };
}

settings!(
    /// Settings of `router add`.
    AddSettings, ADD, law_keys()
);
settings!(
    /// Settings of `router change`.
    ChangeSettings, CHANGE, std::iter::empty::<&xcp_law::Key>()
);

/// Whether it is one of `router add`.
fn is_setting(name: &str) -> bool {
    ADD.iter().any(|s| s.name == name) || law_keys().any(|key| key.name == name)
}

/// What is told of a setting of `router add` after `router change`.
pub fn fixed_when_added(line: &[OsString], error: &clap::Error) -> Option<Failure> {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let name = argument.strip_prefix("--")?;
    let changing = line.get(1..3).is_some_and(|words| words == ["router", "change"]);
    (changing && error.kind() == ErrorKind::UnknownArgument && is_setting(name)).then(|| {
        Failure::new(format!(
            "{name}: this is set when the router is added; remove the router with `router del`, \
             then add it again with `router add`"
        ))
    })
}

/// A command line with the settings of `router` as flags, where they are written as tc's are.
pub fn with_flags(line: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut line = line.peekable();
    let mut flags: Vec<OsString> = line.by_ref().take(3).collect();
    let known = |word: &str| is_setting(word) || ["netns", "config"].contains(&word);
    if flags.get(1).is_none_or(|command| command != "router") {
        flags.extend(line);
        return flags;
    }
    while let Some(word) = line.next() {
        let text = word.to_str().unwrap_or("");
        if known(text) && line.peek().is_some() {
            let mut flag = OsString::from(format!("--{text}="));
            flag.push(line.next().unwrap_or_default());
            flags.push(flag);
            continue;
        }
        let takes = text.strip_prefix("--").is_some_and(known);
        flags.push(word);
        if takes {
            flags.extend(line.next());
        }
    }
    flags
}

#[cfg(test)]
pub mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: RouterArguments,
    }

    /// The settings of a `router add` for eth0 with 10 Mbit/s, and these words.
    pub fn add(words: &str) -> Settings {
        let line = format!("xcpnet router add dev eth0 capacity 10mbit {words}");
        match parsed(&line).unwrap_or_else(|e| panic!("{line}: {e}")) {
            RouterCommand::Add { settings, .. } => settings.0,
            other => panic!("{other:?}"),
        }
    }

    fn parsed(line: &str) -> Result<RouterCommand, clap::Error> {
        let flags = with_flags(line.split_whitespace().map(OsString::from));
        let without = flags.into_iter().enumerate().filter(|(at, _)| *at != 1).map(|(_, w)| w);
        Line::try_parse_from(without).map(|line| line.arguments.command)
    }

    #[test]
    fn both_ways_of_writing_mean_the_same() {
        let flags = parsed("xcpnet router add --capacity 10mbit --dev=eth0 --gain own-rtt");
        let words = parsed("xcpnet router add dev eth0 gain own-rtt capacity 10mbit");
        for command in [flags.unwrap(), words.unwrap()] {
            let RouterCommand::Add { settings, netns: None, config: None } = command else {
                panic!()
            };
            let of = |name| settings.0.text(name);
            assert_eq!((of("dev"), of("capacity")), (Some("eth0"), Some("10mbit")));
            assert_eq!((of("gain"), of("limit")), (Some("own-rtt"), None));
        }
    }

    /// A device, or a namespace, may be called what a setting is.
    #[test]
    fn values_are_not_taken_for_settings() {
        let command = parsed("xcpnet router show --netns dev dev law --json").unwrap();
        let RouterCommand::Show { dev, netns, json, watch } = command else { panic!() };
        assert_eq!((dev.as_deref(), netns.as_deref()), (Some("law"), Some("dev")));
        assert!(json && !watch);
    }

    #[test]
    fn namespace_and_file_are_written_in_either_way() {
        let line = "xcpnet router add dev eth0 netns config capacity 10mbit config netns";
        let RouterCommand::Add { netns, config, .. } = parsed(line).unwrap() else { panic!() };
        assert_eq!(netns.as_deref(), Some("config"));
        assert_eq!(config.as_deref(), Some(std::path::Path::new("netns")));
        let RouterCommand::Del { netns, .. } = parsed("xcpnet router del dev a netns b").unwrap()
        else {
            panic!()
        };
        assert_eq!(netns.as_deref(), Some("b"));
    }

    #[test]
    fn what_only_adding_sets_is_told_when_changing() {
        let told = |words: &str| {
            let words = format!("xcpnet router change dev eth0 {words}");
            let line = with_flags(words.split(' ').map(OsString::from));
            let error = parsed(&words).unwrap_err();
            fixed_when_added(&line, &error).map(|failure| failure.to_string())
        };
        for words in ["police on", "alpha 0.2", "--alpha 0.2", "capacity 1mbit shaper tbf"] {
            let told = told(words).unwrap_or_else(|| panic!("{words}"));
            assert!(told.contains("when the router is added"), "{told}");
        }
        assert_eq!(told("nonsense on"), None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, why) in [
            ("add dev a", "--capacity"),
            ("add dev a dev b capacity 1mbit", "cannot be used multiple times"),
            ("add device a capacity 1mbit", "unexpected argument 'device'"),
            ("add dev a capacity 1mbit gain mine", "own-rtt"),
            ("add dev a capacity", "unexpected argument 'capacity'"),
        ] {
            let error = parsed(&format!("xcpnet router {line}")).unwrap_err().to_string();
            assert!(error.contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn no_two_settings_share_a_name() {
        let mut names: Vec<_> = ADD.iter().map(|s| s.name).collect();
        names.extend(law_keys().map(|key| key.name));
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
