//! Settings by dotted path, from variants (`set = { "flow.congestion" = "newreno" }`) and from the
//! command line (`--set queue.limit=2bdp`): they change the tree before it is read, so that
//! whatever is wrong with a value is found where every value is checked and is shown where it was
//! written. Also turns short forms (`queue = "red"`) into full ones, which lets a path go through
//! them.

use crate::error::Span;
use crate::fields::{Faults, Fields, title};
use crate::spec::{self, FILE, FLOW, Kind, LINK, Spec, TCP_ONLY, instead};
use crate::tree::{Entry, Item, Table, Value};
use xcp_law::text::{split_path, suggest};

/// Turns every short form below a table into the full one.
pub(crate) fn expand(table: &mut Table, spec: &'static Spec) {
    for entry in &mut table.entries {
        if let Some(key) = spec.key(&entry.key) {
            expand_item(&mut entry.item, key.kind);
        }
    }
}

fn expand_item(item: &mut Item, kind: Kind) {
    match kind {
        Kind::Short { short, table } => expand_short(item, short, table),
        Kind::ShortList { short, table } => {
            if !matches!(item.value, Value::Array(_)) {
                let only = item.clone();
                item.value = Value::Array(vec![only]);
            }
            if let Value::Array(items) = &mut item.value {
                items.iter_mut().for_each(|i| expand_short(i, short, table));
            }
        }
        Kind::Table(table) => {
            if let Value::Table(t) = &mut item.value {
                expand(t, table);
            }
        }
        Kind::Tables(table) => {
            if let Value::Array(items) = &mut item.value {
                for i in items {
                    if let Value::Table(t) = &mut i.value {
                        expand(t, table);
                    }
                }
            }
        }
        _ => {}
    }
}

fn expand_short(item: &mut Item, short: &str, spec: &'static Spec) {
    match &mut item.value {
        Value::Table(table) => expand(table, spec),
        _ if short.is_empty() => {}
        _ => {
            let only = item.clone();
            let mut table = Table::default();
            table.set(short, item.span, only);
            item.value = Value::Table(table);
        }
    }
}

/// A setting: where to, and what.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub path: Vec<String>,
    pub path_span: Span,
    pub item: Item,
}

/// The settings of a `set`, if there is one; `example` is for who writes something else there.
pub(crate) fn settings(fields: &Fields<'_>, example: &str) -> Vec<Setting> {
    match fields.item("set") {
        Some(Item { value: Value::Table(table), .. }) => of_table(table, fields.faults),
        Some(other) => {
            let what = format!(
                "`set` takes a table of paths and values, but this is {}",
                other.value.kind()
            );
            fields.faults.add(other.span, what, format!("write set = {example}"));
            Vec::new()
        }
        None => Vec::new(),
    }
}

/// The settings of a table of paths.
fn of_table(table: &Table, faults: &Faults) -> Vec<Setting> {
    let read = |entry: &Entry| match split_path(&entry.key) {
        Some(path) => Some(Setting { path, path_span: entry.key_span, item: entry.item.clone() }),
        None => {
            faults.add(
                entry.key_span,
                format!("\"{}\" is not a path", entry.key),
                "write keys with dots between them, like \"link.bottleneck.rate\"",
            );
            None
        }
    };
    table.entries.iter().filter_map(read).collect()
}

/// Changes the tree of a file as a setting says. `false` if it says something of queues' laws and
/// no queue of the tree has one: what to make of that is for the caller, see [`no_law`].
pub(crate) fn apply(root: &mut Table, setting: &Setting, faults: &Faults) -> bool {
    let at = Place { faults, setting };
    match setting.path[0].as_str() {
        "flow" => at.members(root, &FLOW, &setting.path[1..], &setting.item),
        "link" => at.members(root, &LINK, &setting.path[1..], &setting.item),
        "queue" => return at.queues(root),
        name @ ("variant" | "expect" | "quick" | "seeds") => {
            let what = format!("`{name}` cannot be set");
            faults.add(
                setting.path_span,
                what,
                "set the settings of flows, links and the file itself",
            );
        }
        _ => at.put(root, &FILE, &setting.path, &setting.item),
    }
    true
}

/// Reports that a setting's law is nowhere.
pub(crate) fn no_law(setting: &Setting, faults: &Faults) {
    faults.add(setting.path_span, "the file has no xcp queue", NAME_THE_LINK);
}

const NAME_THE_LINK: &str = "name the link: \"link.NAME.queue\" = { ... }";

struct Place<'a> {
    faults: &'a Faults,
    setting: &'a Setting,
}

impl Place<'_> {
    fn fault(&self, what: String, help: String) {
        self.faults.add(self.setting.path_span, what, help);
    }

    /// `flow.KEY...` of all, or `flow.NAME.KEY...` of one.
    fn members(&self, root: &mut Table, spec: &'static Spec, path: &[String], item: &Item) {
        let Some(Item { value: Value::Array(members), .. }) = root.get_mut(spec.name) else {
            return;
        };
        let Some(first) = path.first() else {
            return self.fault(
                format!("`{0}` is not a setting, but its keys are", spec.name),
                format!("write \"{0}.KEY\" or \"{0}.NAME.KEY\"", spec.name),
            );
        };
        if spec.key(first).is_some() {
            for table in
                members.iter_mut().filter_map(|m| as_table(m)).filter(|t| concerns(t, first))
            {
                self.put(table, spec, path, item);
            }
            return;
        }
        let mut names = Vec::new();
        let mut found = false;
        for table in members.iter_mut().filter_map(|m| as_table(m)) {
            let name = name_of(table, spec);
            if name.as_deref() == Some(first) {
                found = true;
                match &path[1..] {
                    [] => self.fault(
                        format!("`{first}` is a {}, not a setting", spec.name),
                        format!("write \"{}.{first}.KEY\"", spec.name),
                    ),
                    rest => self.put(table, spec, rest, item),
                }
            }
            names.extend(name);
        }
        if !found {
            let group = first
                .rsplit_once('-')
                .filter(|(g, n)| n.parse::<u32>().is_ok() && names.iter().any(|name| name == g));
            let help = match group {
                Some((group, _)) => {
                    format!("members of a group are set together: \"{}.{group}.KEY\"", spec.name)
                }
                None if path.len() > 1 => {
                    suggest(first, names.iter().map(String::as_str), &format!("{}s", spec.name))
                }
                None => suggest(first, spec.names(), "known keys"),
            };
            let kind = if path.len() > 1 { "name" } else { "key" };
            self.fault(format!("no {} has the {kind} `{first}`", spec.name), help);
        }
    }

    /// `queue.KEY`: in every queue that the file writes; the law's keys reach through to its law.
    /// `false` if there is no law.
    fn queues(&self, root: &mut Table) -> bool {
        let path = &self.setting.path[1..];
        let Some(first) = path.first() else {
            self.fault(
                "`queue` is not a setting, but its keys are".into(),
                "write \"queue.limit\", or \"link.queue\" for all links".into(),
            );
            return true;
        };
        let law = spec::is_law_key(first);
        let full: Vec<String> =
            law.then(|| "law".to_string()).into_iter().chain(path.iter().cloned()).collect();
        let Some(Item { value: Value::Array(links), .. }) = root.get_mut("link") else {
            return true;
        };
        let mut found = false;
        for link in links.iter_mut().filter_map(as_table) {
            let mut each = |queue: Option<&mut Item>| {
                if let Some(queue) = queue.and_then(as_table)
                    && (!law || queue.text("kind") == Some("xcp"))
                {
                    found = true;
                    self.put(queue, &spec::QUEUE, &full, &self.setting.item);
                }
            };
            each(link.get_mut("queue"));
            each(link.get_mut("reverse").and_then(as_table).and_then(|r| r.get_mut("queue")));
        }
        if !found && !law {
            self.fault("the file has no queue".into(), NAME_THE_LINK.into());
        }
        found || !law
    }

    /// Sets a path below a table, making tables on the way as needed.
    fn put(&self, table: &mut Table, spec: &'static Spec, path: &[String], item: &Item) {
        let (name, rest) = (&path[0], &path[1..]);
        if let ("reverse", [key, _, ..]) = (name.as_str(), rest) {
            own_copy(table, key, self.setting.path_span);
        }
        let Some(key) = spec.key(name) else {
            return self
                .fault(format!("unknown key `{name}` in {}", title(spec)), instead(name, spec));
        };
        if rest.is_empty() {
            let mut item = item.clone();
            expand_item(&mut item, key.kind);
            table.set(name, self.setting.path_span, item);
            return;
        }
        let below = match key.kind {
            Kind::Table(below)
            | Kind::Short { table: below, .. }
            | Kind::ShortList { table: below, .. } => below,
            _ => {
                return self.fault(
                    format!("`{name}` has no keys of its own"),
                    format!("end the path at `{name}`"),
                );
            }
        };
        if table.get(name).is_none() {
            let mut empty =
                Item { span: self.setting.item.span, value: Value::Table(Table::default()) };
            expand_item(&mut empty, key.kind);
            table.set(name, self.setting.path_span, empty);
        }
        match table.get_mut(name).map(|i| &mut i.value) {
            Some(Value::Table(inner)) => self.put(inner, below, rest, item),
            Some(Value::Array(items)) => items
                .iter_mut()
                .filter_map(as_table)
                .for_each(|inner| self.put(inner, below, rest, item)),
            _ => {}
        }
    }
}

/// Gives a link's other direction a copy of what it has of the link's under this key, so that a path
/// below it changes that, and not what a new one would be. What is said of one direction only is not
/// copied.
fn own_copy(link: &mut Table, key: &str, span: Span) {
    let Some(shared) = link.get(key).filter(|shared| !is_of_one_direction(shared)).cloned() else {
        return;
    };
    if link.get("reverse").is_none() {
        link.set("reverse", span, Item { span, value: Value::Table(Table::default()) });
    }
    if let Some(reverse) = link.get_mut("reverse").and_then(as_table)
        && reverse.get(key).is_none()
    {
        reverse.set(key, span, shared);
    }
}

fn is_of_one_direction(item: &Item) -> bool {
    match &item.value {
        Value::Table(table) => table.get("direction").is_some(),
        Value::Array(items) => items.iter().any(is_of_one_direction),
        _ => false,
    }
}

fn as_table(item: &mut Item) -> Option<&mut Table> {
    match &mut item.value {
        Value::Table(table) => Some(table),
        _ => None,
    }
}

/// Whether a key that is set for all flows is meant for this one: TCP's keys are not for datagrams,
/// nor the other way round.
pub(crate) fn concerns(table: &Table, key: &str) -> bool {
    let udp = table.get("udp").is_some();
    !(udp && TCP_ONLY.contains(&key)) && (udp || key != "udp")
}

/// The name of a link or flow, given or by default.
pub(crate) fn name_of(table: &Table, spec: &Spec) -> Option<String> {
    if let Some(name) = table.text("name") {
        return Some(name.into());
    }
    if spec.name == "flow" {
        return Some("flow".into());
    }
    match &table.get("between")?.value {
        Value::Array(ends) => match ends.as_slice() {
            [Item { value: Value::Text(a), .. }, Item { value: Value::Text(b), .. }] => {
                Some(format!("{a}-{b}"))
            }
            _ => None,
        },
        _ => None,
    }
}
