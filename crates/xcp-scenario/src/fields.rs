//! Reads the keys of one table of the file, each as `spec` says, and reports every fault instead
//! of stopping at the first. What the values mean together is for the callers.

use std::cell::RefCell;

use crate::error::{Issue, Span};
use crate::spec::{
    CONGESTIONS, DELAY_CHANGES, Key, Kind, RATE_CHANGES, Spec, instead, kernels_name,
};
use crate::tree::{Item, Table, Value};
use xcp_law::quantity::{self, Amount, Complaint, Standing};
use xcp_law::text::{listed, suggest};
use xcp_model::units::Nanos;
use xcp_model::{Claim, OverSeeds};

/// Where faults are collected.
#[derive(Debug, Default)]
pub(crate) struct Faults(RefCell<Vec<Issue>>);

impl Faults {
    pub fn add(&self, span: Span, what: impl Into<String>, help: impl Into<String>) {
        let help: String = help.into();
        let help = (!help.is_empty()).then_some(help);
        self.0.borrow_mut().push(Issue { span: Some(span), what: what.into(), help });
    }

    pub fn add_whole(&self, what: impl Into<String>, help: impl Into<String>) {
        self.0.borrow_mut().push(Issue { span: None, what: what.into(), help: Some(help.into()) });
    }

    pub fn count(&self) -> usize {
        self.0.borrow().len()
    }

    pub fn take(&self) -> Vec<Issue> {
        self.0.take()
    }
}

/// A table of the file while it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a> {
    pub faults: &'a Faults,
    pub table: &'a Table,
    /// Where the table stands, for faults about what is absent.
    pub span: Span,
    spec: &'static Spec,
}

impl<'a> Fields<'a> {
    /// Reports unknown keys and absent required ones.
    pub fn new(faults: &'a Faults, spec: &'static Spec, table: &'a Table, span: Span) -> Self {
        for entry in &table.entries {
            if spec.key(&entry.key).is_none() {
                faults.add(
                    entry.key_span,
                    format!("unknown key `{}` in {}", entry.key, title(spec)),
                    instead(&entry.key, spec),
                );
            }
        }
        Self { faults, table, span, spec }
    }

    /// A table given as an item; reports when it is none.
    pub fn of(faults: &'a Faults, spec: &'static Spec, item: &'a Item) -> Option<Self> {
        match &item.value {
            Value::Table(table) => Some(Self::new(faults, spec, table, item.span)),
            other => {
                faults.add(
                    item.span,
                    format!("`{}` takes a table, but this is {}", spec.name, other.kind()),
                    "write { key = value, ... }",
                );
                None
            }
        }
    }

    fn key(&self, name: &str) -> &'static Key {
        // The reader asks for keys of the spec only; a test reads every key of every table.
        self.spec
            .key(name)
            .unwrap_or_else(|| panic!("`{name}` is not a key of `{}`", self.spec.name))
    }

    /// The item of a key, if given.
    pub fn item(&self, name: &str) -> Option<&'a Item> {
        debug_assert!(self.spec.key(name).is_some());
        self.table.get(name)
    }

    /// Where a key's value stands, or else the table.
    pub fn span_of(&self, name: &str) -> Span {
        self.table.get(name).map_or(self.span, |i| i.span)
    }

    /// Reports if a key is absent.
    pub fn require(&self, name: &str) {
        if self.table.get(name).is_none() {
            let key = self.key(name);
            let help = match key.kind {
                Kind::Tables(_) => format!("add a section that begins with [[{name}]]"),
                _ => format!("add {name} = {}", key.example),
            };
            self.faults.add(self.span, format!("{} has no `{name}`", title(self.spec)), help);
        }
    }

    /// Reports keys that mean nothing to a choice made in the table; `belongs` are those that do.
    pub fn only(&self, belongs: &[&str], choice: &str) {
        for entry in self
            .table
            .entries
            .iter()
            .filter(|e| self.spec.key(&e.key).is_some() && !belongs.contains(&e.key.as_str()))
        {
            let what = format!("`{}` has no meaning for {choice}", entry.key);
            self.faults.add(
                entry.key_span,
                what,
                format!("its keys are {}", listed(belongs.iter().copied())),
            );
        }
    }

    /// The value of a key; `None` if it is absent or wrong (then a fault has been reported).
    pub fn text(&self, name: &str) -> Option<String> {
        let item = self.item(name)?;
        match &item.value {
            Value::Text(text) => Some(text.clone()),
            _ => self.wrong(item, name, "text"),
        }
    }

    pub fn name(&self, name: &str) -> Option<String> {
        let item = self.item(name)?;
        self.name_of(item, name)
    }

    fn name_of(&self, item: &Item, key: &str) -> Option<String> {
        let Value::Text(text) = &item.value else {
            return self.wrong(item, key, "a name");
        };
        let what = if text.trim().is_empty() {
            "a name cannot be empty".into()
        } else if let Some(c) =
            text.chars().find(|c| matches!(c, '.' | '"' | '*') || c.is_control())
        {
            format!(
                "a name cannot contain {}",
                if c.is_control() { "control characters".into() } else { format!("`{c}`") }
            )
        } else if matches!(self.spec.name, "link" | "flow") && begins_a_formula(text) {
            "a name in a table of results cannot begin like a spreadsheet formula".into()
        } else if text.chars().count() > 100 {
            "a name cannot be longer than 100 characters".into()
        } else {
            return Some(text.clone());
        };
        self.faults.add(
            item.span,
            what,
            "use letters, digits, `-` and `_`; dots separate the parts of paths and metrics",
        );
        None
    }

    /// A list of names; a single one counts as a list where the kind allows it.
    pub fn names(&self, name: &str) -> Option<Vec<(String, Span)>> {
        let item = self.item(name)?;
        match (&item.value, self.key(name).kind) {
            (Value::Array(items), _) => {
                items.iter().map(|i| Some((self.name_of(i, name)?, i.span))).collect()
            }
            (Value::Text(_), Kind::NameOrNames) => {
                Some(vec![(self.name_of(item, name)?, item.span)])
            }
            _ => self.wrong(item, name, "a list of names"),
        }
    }

    pub fn bool(&self, name: &str) -> Option<bool> {
        let item = self.item(name)?;
        match item.value {
            Value::Bool(b) => Some(b),
            _ => self.wrong(item, name, "true or false"),
        }
    }

    pub fn choice(&self, name: &str) -> Option<&'static str> {
        let item = self.item(name)?;
        let Kind::Choice(words) = self.key(name).kind else {
            unreachable!("`{name}` is not a choice")
        };
        match &item.value {
            Value::Text(text) => {
                let found = words.iter().find(|w| *w == text).copied();
                if found.is_none() {
                    let what = format!(
                        "unknown {} \"{text}\"",
                        if name == "preset" { "law" } else { name }
                    );
                    self.faults.add(
                        item.span,
                        what,
                        suggest(text, words.iter().copied(), "known ones"),
                    );
                }
                found
            }
            _ => self.wrong(item, name, &format!("one of {}", listed(words.iter().copied()))),
        }
    }

    /// The name of a congestion control: one of ours, or one of the kernel's where the scenario is
    /// for a kernel.
    pub fn congestion(&self, name: &str, kernel: Option<&'a [String]>) -> Option<&'a str> {
        let item = self.item(name)?;
        let kernels =
            kernel.into_iter().flatten().map(String::as_str).filter(|k| !CONGESTIONS.contains(k));
        let known = CONGESTIONS.iter().copied().chain(kernels);
        let Value::Text(text) = &item.value else {
            return self.wrong(item, name, &format!("one of {}", listed(known)));
        };
        let found = known.clone().find(|k| k == text);
        if found.is_none() {
            let (who, more) = match kernel {
                None => ("the simulator", "with --on linux also those of the kernel"),
                Some(_) => (
                    "this kernel",
                    "others may be modules that are not loaded: try `modprobe tcp_NAME`",
                ),
            };
            let offered = known.filter(|name| {
                let theirs = kernels_name(name);
                kernel.is_none_or(|list| theirs.is_none_or(|one| list.iter().any(|k| k == one)))
            });
            let help = format!("{}; {more}", suggest(text, offered, "known ones"));
            self.faults.add(item.span, format!("{who} has no congestion control \"{text}\""), help);
        }
        found
    }

    pub fn integer(&self, name: &str) -> Option<u64> {
        let item = self.item(name)?;
        let Kind::Integer { min, max } = self.key(name).kind else {
            unreachable!("`{name}` is not an integer")
        };
        match item.value {
            Value::Integer(n) => self.within(item, name, n, min, max),
            _ => self.wrong(item, name, "a whole number"),
        }
    }

    fn within(&self, item: &Item, name: &str, n: Option<i128>, min: u64, max: u64) -> Option<u64> {
        let value = n.and_then(|n| u64::try_from(n).ok()).filter(|n| (min..=max).contains(n));
        if value.is_none() {
            let shown = n.map_or_else(|| "this number".into(), |n| n.to_string());
            self.faults.add(
                item.span,
                format!("`{name}` cannot be {shown}"),
                format!("write a whole number from {min} to {max}"),
            );
        }
        value
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        let item = self.item(name)?;
        let Kind::Number { min, max } = self.key(name).kind else {
            unreachable!("`{name}` is not a number")
        };
        #[expect(
            clippy::cast_precision_loss,
            reason = "the nearest double is what a number in a file means"
        )]
        let value = match &item.value {
            Value::Integer(Some(n)) => *n as f64,
            Value::Float(text) => text.parse().unwrap_or(f64::NAN),
            _ => return self.wrong(item, name, "a number"),
        };
        if value >= min && value <= max {
            return Some(value);
        }
        let help = if min == f64::MIN {
            "write a finite number".to_string()
        } else {
            format!("write a number from {min} to {max}, like {}", self.key(name).example)
        };
        self.faults.add(item.span, format!("`{name}` cannot be {value}"), help);
        None
    }

    /// What must hold of several seeds.
    pub fn over_seeds(&self, name: &str) -> Option<OverSeeds> {
        let item = self.item(name)?;
        let share = match &item.value {
            Value::Text(text) if text == "median" => return Some(OverSeeds::Median),
            Value::Text(text) if text == "all" => return Some(OverSeeds::All),
            Value::Integer(Some(1)) => 1.0,
            Value::Float(text) => text.parse().unwrap_or(f64::NAN),
            _ => f64::NAN,
        };
        if share > 0.0 && share <= 1.0 {
            return Some(OverSeeds::Share(share));
        }
        self.wrong(item, name, "\"median\", \"all\" or a share above 0 and up to 1")
    }

    /// A rate, not zero.
    pub fn rate(&self, name: &str) -> Option<u64> {
        let item = self.item(name)?;
        self.rate_of(item, name, false)
    }

    pub fn rate_of(&self, item: &Item, name: &str, zero: bool) -> Option<u64> {
        let bare = |n: &str| {
            format!("write \"{n}bit\" if {n} is in bit/s, \"{n}mbit\" if it is in Mbit/s")
        };
        let rate = self.quantity(item, name, "a rate", bare, quantity::rate)?;
        if (1..quantity::MIN_RATE_BPS).contains(&rate) {
            self.faults.add(
                item.span,
                format!("{rate} bit/s is less than a byte a second"),
                "write \"8bit\" or more",
            );
            return None;
        }
        self.unless_zero(
            item,
            name,
            rate,
            zero,
            "a rate of zero never sends anything: write a rate above zero, like \"10mbit\"",
        )
    }

    /// A time; zero unless the spec says it cannot be.
    pub fn time(&self, name: &str) -> Option<Nanos> {
        let item = self.item(name)?;
        self.time_of(item, name, !matches!(self.key(name).kind, Kind::Length))
    }

    pub fn time_of(&self, item: &Item, name: &str, zero: bool) -> Option<Nanos> {
        let bare = |n: &str| format!("write \"{n}s\" for seconds or \"{n}ms\" for milliseconds");
        let time = self.quantity(item, name, "a time", bare, quantity::time)?;
        self.unless_zero(item, name, time, zero, "write a time above zero, like \"10s\"")
    }

    fn unless_zero(
        &self,
        item: &Item,
        name: &str,
        value: u64,
        zero: bool,
        help: &str,
    ) -> Option<u64> {
        if value == 0 && !zero {
            self.faults.add(item.span, format!("`{name}` cannot be zero"), help);
            return None;
        }
        Some(value)
    }

    /// A quantity with a unit; a bare number is answered with what it might have meant.
    fn quantity<T>(
        &self,
        item: &Item,
        name: &str,
        kind: &str,
        bare: impl Fn(&str) -> String,
        parse: impl Fn(&str) -> Result<T, Complaint>,
    ) -> Option<T> {
        match &item.value {
            Value::Text(text) => match parse(text) {
                Ok(value) => Some(value),
                Err(Complaint { what, help }) => {
                    self.faults.add(item.span, what, help);
                    None
                }
            },
            other => {
                let example = self.example(name);
                let (what, help) = match other.number() {
                    Some(n) if n.starts_with('-') => (
                        format!("{kind} cannot be negative: {n}"),
                        format!("write it like {example}"),
                    ),
                    Some(n) => (
                        format!("`{name}` takes {kind} with a unit, but this is a bare number"),
                        bare(&n),
                    ),
                    None => (
                        format!("`{name}` takes {kind}, but this is {}", other.kind()),
                        format!("write it like {example}"),
                    ),
                };
                self.faults.add(item.span, what, help);
                None
            }
        }
    }

    fn example(&self, name: &str) -> &'static str {
        match self.spec.key(name) {
            Some(key) if !key.example.is_empty() => key.example,
            _ => "\"10mbit\"",
        }
    }

    /// A number of bytes, with or without a unit.
    pub fn size(&self, name: &str) -> Option<u64> {
        let item = self.item(name)?;
        let (min, max) = match self.key(name).kind {
            Kind::Size { min, max } => (min, max),
            Kind::Buffer { min } => (min, quantity::MAX_BYTES),
            _ => unreachable!("`{name}` is not a size"),
        };
        let bytes = match item.value {
            Value::Integer(n) => return self.within(item, name, n, min, max),
            _ => self.quantity(
                item,
                name,
                "a size",
                |n| format!("write a whole number of bytes, not {n}"),
                quantity::size,
            )?,
        };
        if (min..=max).contains(&bytes) {
            return Some(bytes);
        }
        self.faults.add(
            item.span,
            format!("`{name}` cannot be {bytes} bytes"),
            format!("write a size from {min} to {max} bytes"),
        );
        None
    }

    /// Bytes of a buffer; `None` if it is unlimited, absent or wrong.
    pub fn buffer(&self, name: &str) -> Option<u64> {
        match &self.item(name)?.value {
            Value::Text(text) if text == "unlimited" => None,
            _ => self.size(name),
        }
    }

    /// A queue limit or threshold, not zero.
    pub fn amount(&self, name: &str) -> Option<(Amount, Span)> {
        let item = self.item(name)?;
        let percent = matches!(self.key(name).kind, Kind::Threshold);
        let amount = match item.value {
            Value::Integer(n) => {
                Amount::Packets(self.within(item, name, n, 0, quantity::MAX_PACKETS)?)
            }
            _ => {
                let bare = |n: &str| {
                    format!(
                        "write whole packets (100), or \"{n}bdp\" for {n} bandwidth-delay products"
                    )
                };
                self.quantity(item, name, "an amount", bare, |text| {
                    quantity::amount(text, percent)
                })?
            }
        };
        if amount.is_zero() {
            let help = "a queue must hold something in addition to the packet being sent: write \
                packets (\"100p\" or 100), bytes (\"64kb\") or bandwidth-delay products \
                (\"2bdp\")";
            self.faults.add(item.span, format!("`{name}` cannot be zero"), help);
            return None;
        }
        Some((amount, item.span))
    }

    /// A queue that may stand, zero included.
    pub fn standing(&self, name: &str) -> Option<(Standing, Span)> {
        let item = self.item(name)?;
        let standing = match item.value {
            Value::Integer(n) => Standing::Amount(Amount::Packets(self.within(
                item,
                name,
                n,
                0,
                quantity::MAX_PACKETS,
            )?)),
            _ => {
                let bare = |n: &str| {
                    format!(
                        "write whole packets (100), or \"{n}ms\" for what the link sends in {n} \
                            milliseconds"
                    )
                };
                self.quantity(item, name, "an amount or a time", bare, quantity::standing)?
            }
        };
        Some((standing, item.span))
    }

    fn wrong<T>(&self, item: &Item, name: &str, wanted: &str) -> Option<T> {
        let help = match self.spec.key(name) {
            Some(key) if !key.example.is_empty() => {
                format!("write it like {name} = {}", key.example)
            }
            _ => String::new(),
        };
        self.faults.add(
            item.span,
            format!("`{name}` takes {wanted}, but this is {}", item.value.kind()),
            help,
        );
        None
    }

    /// Multiples of something.
    pub fn factor(&self, name: &str) -> Option<f64> {
        let item = self.item(name)?;
        self.quantity(item, name, "a factor", |n| format!("write \"{n}x\""), quantity::factor)
    }

    /// What is claimed of a time.
    pub fn claimed_time(&self, name: &str) -> Option<Claim<Nanos>> {
        let item = self.item(name)?;
        let bare = |n: &str| {
            format!("write \"{n}s\" for seconds, or \"{n}x\" for multiples of the true one")
        };
        self.quantity(item, name, "a time or a factor", bare, quantity::claimed_time)
    }

    /// What is claimed of a window.
    pub fn claimed_window(&self, name: &str) -> Option<Claim<f64>> {
        let item = self.item(name)?;
        let bare = |n: &str| {
            format!("write \"{n}p\" for packets, or \"{n}x\" for multiples of the true one")
        };
        self.quantity(item, name, "packets or a factor", bare, quantity::claimed_window)
    }

    /// A table under a key.
    pub fn table(&self, name: &str, spec: &'static Spec) -> Option<Fields<'a>> {
        Fields::of(self.faults, spec, self.item(name)?)
    }

    /// A list of `[time, rate]` in order of time, which must not be empty.
    pub fn rate_steps(&self, name: &str) -> Option<Vec<(Nanos, u64)>> {
        let read = |item: &Item| self.rate_of(item, name, true);
        self.steps(name, "rate", ["1mbit", "2mbit"], read)
    }

    /// A list of `[time, time]` in order of the first, which must not be empty.
    pub fn time_steps(&self, name: &str) -> Option<Vec<(Nanos, Nanos)>> {
        self.steps(name, "time", ["20ms", "30ms"], |item| self.time_of(item, name, true))
    }

    /// A list of `[time, value]`; `what` the values are, and two for an example.
    fn steps(
        &self,
        name: &str,
        what: &str,
        [one, other]: [&str; 2],
        read: impl Fn(&Item) -> Option<u64>,
    ) -> Option<Vec<(Nanos, u64)>> {
        let item = self.item(name)?;
        let wrong = |item: &Item| {
            self.faults.add(
                item.span,
                format!("`{name}` takes a list of [time, {what}]"),
                format!("write {name} = [[\"1s\", \"{one}\"], [\"10s\", \"{other}\"]]"),
            )
        };
        let rows = match &item.value {
            Value::Array(rows) => rows,
            Value::Text(_) if [RATE_CHANGES, DELAY_CHANGES].contains(&name) => {
                self.faults.add(
                    item.span,
                    "a trace can only be named in a scenario file, because it is read together \
                     with that file",
                    "write the list of steps, or name the trace in a scenario file",
                );
                return None;
            }
            _ => {
                wrong(item);
                return None;
            }
        };
        let mut steps: Vec<(Nanos, u64)> = Vec::new();
        for row in rows {
            let Value::Array(cells) = &row.value else {
                wrong(row);
                continue;
            };
            let [from, value] = cells.as_slice() else {
                wrong(row);
                continue;
            };
            let (Some(t), Some(value)) = (self.time_of(from, name, true), read(value)) else {
                continue;
            };
            if steps.last().is_some_and(|(before, _)| *before >= t) {
                self.faults.add(
                    from.span,
                    "the steps are not in order of time",
                    "each step must be later than the one before it",
                );
            }
            steps.push((t, value));
        }
        Some(steps)
    }

    /// The tables of `[[name]]`.
    pub fn tables(&self, name: &str, spec: &'static Spec) -> Vec<Fields<'a>> {
        let Some(item) = self.item(name) else { return Vec::new() };
        match &item.value {
            Value::Array(items) => {
                items.iter().filter_map(|i| Fields::of(self.faults, spec, i)).collect()
            }
            other => {
                self.faults.add(
                    item.span,
                    format!("`{name}` is {}", other.kind()),
                    format!("a {name} begins with [[{name}]], in double brackets"),
                );
                Vec::new()
            }
        }
    }
}

/// Whether a spreadsheet that opens a table (CSV) with this name in it may take it, or what follows
/// a separator in it, for a formula to be carried out (OWASP, "CSV Injection"). Names of links and
/// flows are what stands in our tables; they are refused here instead of being written otherwise
/// there, because a name is the same in every table, report and `--json`.
fn begins_a_formula(name: &str) -> bool {
    name.split([',', ';'])
        .any(|part| part.trim_start().starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']))
}

/// A table's name in messages.
pub(crate) fn title(spec: &Spec) -> String {
    match spec.name {
        "the file" => "the file".into(),
        "link" | "flow" | "variant" | "expect" => format!("[[{}]]", spec.name),
        name => format!("`{name}`"),
    }
}
