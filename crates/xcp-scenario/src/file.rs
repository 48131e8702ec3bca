//! From the text of a scenario file to [`Scenario`]s, one for each variant. Puts the parts
//! together; each part is read in a module of its own.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use crate::claims;
use crate::error::{OVERRIDE, ScenarioError, Source, Span};
use crate::fields::{Faults, Fields};
use crate::flows::{self, Whole, crossings, measure};
use crate::footprint::Origins;
use crate::graph::Graph;
use crate::links::{self, Media, Nodes};
use crate::plan;
use crate::set::{self, Setting};
use crate::spec::{DURATION, FILE, FLOW, VARIANT};
use crate::traces;
use crate::tree::{self, Item, Table, Value};
use xcp_law::quantity::show_time;
use xcp_law::text::suggest;
use xcp_model::units::Nanos;
use xcp_model::{Sampling, Scenario};

/// Settings from outside the file, over those of the file and of its variants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Dotted path and value, e.g. `queue.limit` and `2bdp`. A value that is not TOML is taken as
    /// text, so that quotes are not needed.
    pub settings: Vec<(String, String)>,
    /// Read only the variants of these names; all if empty. Names that the file lacks are passed
    /// over.
    pub variants: Vec<String>,
    /// Whether what the file's `quick` says is applied, and claims that it does not judge are left
    /// out.
    pub quick: bool,
    /// Names of the congestion controls of the kernel that the scenario is to run on. `None` is for
    /// the simulator: only its own are taken.
    pub kernel: Option<Vec<String>>,
}

impl Overrides {
    /// No settings, variants or seed from the command line.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// These and one more, as from `--set PATH=VALUE`.
    #[must_use]
    pub fn with(mut self, path: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((path.into(), value.into()));
        self
    }

    /// These, and of the file only the variants of these names, all if there are none.
    #[must_use]
    pub fn only(mut self, variants: &[String]) -> Self {
        self.variants = variants.to_vec();
        self
    }

    /// These, and of the file what `xcpnet reproduce --quick` runs.
    #[must_use]
    pub fn quick(mut self, quick: bool) -> Self {
        self.quick = quick;
        self
    }

    /// These, for a kernel that has these congestion controls.
    #[must_use]
    pub fn on_kernel(mut self, congestions: Vec<String>) -> Self {
        self.kernel = Some(congestions);
        self
    }
}

/// A scenario and where its parts stand in the file, for messages about it later on.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The scenario that was read.
    pub scenario: Scenario,
    /// Where its parts stand.
    pub origins: Origins,
}

/// Keeps the series of a file's runs if they are wanted, or if claims need them: any variant's
/// claim may be about the series of another.
pub fn keep_series(runs: &mut [Loaded], wanted: bool) {
    let keep = wanted || runs.iter().any(|run| !run.scenario.expectations.is_empty());
    runs.iter_mut().for_each(|run| run.scenario.series = keep);
}

/// Reads a scenario from a text; `path` is shown in messages, and the file's name is the title
/// where the text gives none.
///
/// Gives one scenario for each `[[variant]]`, or one if there are none.
///
/// # Errors
/// All that is wrong with the text, see [`ScenarioError`].
pub fn load(
    path: &Path,
    text: &str,
    overrides: &Overrides,
) -> Result<Vec<Scenario>, ScenarioError> {
    Ok(load_with_origins(path, text, overrides)?.into_iter().map(|l| l.scenario).collect())
}

/// [`load`] for the content of a file.
///
/// # Errors
/// As [`load`], or that the file cannot be read.
pub fn load_file(path: &Path, overrides: &Overrides) -> Result<Vec<Loaded>, ScenarioError> {
    load_with_origins(path, &read_text(path, &overrides.settings)?, overrides)
}

/// The names of a text's variants, in its order; one empty name if it has none. None at all if the
/// text is not TOML, which [`load`] will tell.
#[must_use]
pub fn variant_names(text: &str) -> Vec<String> {
    let (root, syntax) = tree::parse(text);
    if syntax.is_empty() {
        variants(&root, &Faults::default()).into_iter().map(|v| v.name).collect()
    } else {
        Vec::new()
    }
}

/// The content of a scenario file, with the traces that it names written into it as the lists of
/// steps that they come to, for a run as long as the file, or one of `settings`, says.
///
/// # Errors
/// That the file or a trace cannot be read, is a directory, or is not UTF-8.
pub fn read_text(path: &Path, settings: &[(String, String)]) -> Result<String, ScenarioError> {
    let text = xcp_law::file::read(path, "scenario file").map_err(|wrong| {
        ScenarioError::whole(&path.display().to_string(), wrong.what, Some(wrong.help))
    })?;
    traces::from_files(path, text, settings)
}

/// [`load`], keeping where everything stands.
///
/// # Errors
/// As [`load`].
pub fn load_with_origins(
    path: &Path,
    text: &str,
    overrides: &Overrides,
) -> Result<Vec<Loaded>, ScenarioError> {
    let mut sources = vec![Source { name: path.display().to_string(), text: text.into() }];
    let faults = Faults::default();
    let outside = read_overrides(overrides, &mut sources, &faults);
    let (mut root, syntax) = tree::parse(text);
    if !syntax.is_empty() {
        // What follows a syntax error is not reliable: more messages would be noise.
        return Err(ScenarioError::from_issues(syntax, &sources));
    }
    set::expand(&mut root, &FILE);
    let title =
        path.file_stem().map_or_else(|| "scenario".into(), |s| s.to_string_lossy().into_owned());
    let variants = variants(&root, &faults);
    let names: Vec<String> = variants.iter().map(|v| v.name.clone()).collect();
    let plan = plan::read(&root, &names, &faults);
    let quick = plan.quick.as_ref().filter(|_| overrides.quick);
    // What the variants are has been read. In the tree, of which each variant gets a copy, they
    // would stand once for each of them.
    root.remove("variant");
    let sources: Arc<[Source]> = sources.into();
    let mut loaded = Vec::new();
    // A setting from outside is for all variants, some of which may have another kind of queue; it
    // must concern one of them.
    let mut concerns_none = vec![true; outside.len()];
    let wanted = |v: &&Variant| {
        (overrides.variants.is_empty() || overrides.variants.contains(&v.name))
            && quick.is_none_or(|q| q.runs(&v.name))
    };
    for variant in variants.iter().filter(wanted) {
        let mut tree = root.clone();
        for setting in variant.settings.iter().chain(quick.into_iter().flat_map(|q| &q.settings)) {
            if !set::apply(&mut tree, setting, &faults) {
                set::no_law(setting, &faults);
            }
        }
        for (setting, none) in outside.iter().zip(&mut concerns_none) {
            *none &= !set::apply(&mut tree, setting, &faults);
        }
        loaded.extend(read(&tree, variant, &names, &title, &sources, overrides, &faults));
    }
    for (setting, _) in outside.iter().zip(concerns_none).filter(|(_, none)| *none) {
        set::no_law(setting, &faults);
    }
    let issues = faults.take();
    if issues.is_empty() { Ok(loaded) } else { Err(ScenarioError::from_issues(issues, &sources)) }
}

/// Overrides as settings; each becomes a text of its own that messages can point into.
fn read_overrides(
    overrides: &Overrides,
    sources: &mut Vec<Source>,
    faults: &Faults,
) -> Vec<Setting> {
    let mut settings = Vec::new();
    for (path, value) in &overrides.settings {
        let source = sources.len();
        let path_span = Span { source, start: 0, end: path.len() };
        sources.push(Source {
            name: format!("{OVERRIDE}{path}={value}"),
            text: format!("{path}={value}"),
        });
        match xcp_law::text::split_path(path) {
            Some(parts) => settings.push(Setting {
                path: parts,
                path_span,
                item: tree::parse_value(value, source, path.len() + 1),
            }),
            None => faults.add(
                path_span,
                format!("\"{path}\" is not a path"),
                "write keys with dots between them, like link.bottleneck.rate",
            ),
        }
    }
    settings
}

/// A `[[variant]]`; a file without any has one without a name.
#[derive(Debug, Default)]
struct Variant {
    name: String,
    settings: Vec<Setting>,
    without: Vec<(String, Span)>,
}

fn variants(root: &Table, faults: &Faults) -> Vec<Variant> {
    // Unknown keys of the file are reported when the variants are read, not here as well.
    let Some(Item { value: Value::Array(items), .. }) = root.get("variant") else {
        return vec![Variant::default()];
    };
    let mut names = HashSet::new();
    let mut result = Vec::new();
    for item in items {
        let Some(fields) = Fields::of(faults, &VARIANT, item) else { continue };
        fields.require("name");
        let name = fields.name("name").unwrap_or_default();
        if !name.is_empty() && !names.insert(name.clone()) {
            faults.add(
                fields.span_of("name"),
                format!("two variants are named `{name}`"),
                "give each variant a different name",
            );
        }
        let settings = set::settings(&fields, "{ \"flow.congestion\" = \"newreno\" }");
        result.push(Variant {
            name,
            settings,
            without: fields.names("without").unwrap_or_default(),
        });
    }
    if result.is_empty() { vec![Variant::default()] } else { result }
}

/// Reads one variant's tree; `None` if there were faults.
fn read(
    tree: &Table,
    variant: &Variant,
    variants: &[String],
    title: &str,
    sources: &Arc<[Source]>,
    overrides: &Overrides,
    faults: &Faults,
) -> Option<Loaded> {
    let kernel = overrides.kernel.as_deref();
    let before = faults.count();
    let top = Span { source: 0, start: 0, end: 0 };
    let file = Fields::new(faults, &FILE, tree, top);
    for (key, what) in [
        (DURATION, "the file does not say how long the run lasts"),
        ("link", "the file has no [[link]]"),
        ("flow", "the file has no [[flow]]"),
    ] {
        if file.item(key).is_none() {
            let help = match key {
                DURATION => "add duration = \"60s\" at the top".into(),
                _ => format!("add a section that begins with [[{key}]]"),
            };
            faults.add_whole(what, help);
        }
    }
    // With a faulty duration nothing is measured against it.
    let duration = file.time(DURATION).unwrap_or(xcp_law::quantity::MAX_TIME);
    let mut nodes = Nodes::default();
    let mut media = Media::default();
    let links = links::read(&file, &mut nodes, &mut media, duration);
    if file.item("link").is_some() && links.is_empty() && faults.count() == before {
        faults.add(
            file.span_of("link"),
            "the file has no [[link]]",
            "add a section that begins with [[link]]",
        );
    }
    let edges: Vec<_> =
        links.iter().map(|l| (l.ends, [l.directions[0].delay, l.directions[1].delay])).collect();
    let mut graph = Graph::new(nodes.names.len(), &edges);
    // Where a link is missing because it is faulty, which nodes exist and what reaches what cannot
    // be told.
    nodes.complete = links.len() == list_length(file.item("link"));
    let seed = file.integer("seed").unwrap_or(1);
    let wants_ids: Vec<bool> =
        links.iter().flat_map(|l| l.directions.each_ref().map(|d| d.queue.wants_ids())).collect();
    let flows = flows::read(
        &file,
        &nodes,
        &mut graph,
        Whole { duration, seed, kernel, wants_ids: &wants_ids },
        &without(&file, variant, faults),
    );
    if faults.count() == before && flows.flows.is_empty() {
        let span = variant.without.first().map_or(file.span_of("flow"), |(_, span)| *span);
        faults.add(span, "no flow is left", "a run needs at least one [[flow]]");
    }
    let delays: Vec<Nanos> = edges.iter().flat_map(|(_, delays)| *delays).collect();
    let (crossings, largest_rtt) = crossings(&flows.flows, &delays);
    let limits: Vec<[Span; 2]> = links
        .iter()
        .map(|l| [l.directions[0].queue.limit_span, l.directions[1].queue.limit_span])
        .collect();
    let link_spans: Vec<Span> = links.iter().map(|l| l.span).collect();
    let links: Vec<_> = links
        .into_iter()
        .enumerate()
        .map(|(i, l)| l.resolve([crossings[2 * i], crossings[2 * i + 1]], faults))
        .collect();
    let measure = measure(&file, duration);
    let sample = sample(&file, duration, largest_rtt);
    let mut scenario = Scenario {
        title: file.text("title").map_or_else(|| title.into(), |text| one_line(&text)),
        variant: variant.name.clone(),
        description: file.text("description").unwrap_or_default(),
        duration,
        seed,
        measure,
        sample,
        series: true,
        nodes: nodes.names,
        links,
        media: media.names,
        flows: flows.flows,
        expectations: Vec::new(),
    };
    let sound = faults.count() == before;
    scenario.expectations = claims::read(&file, &scenario, variants, overrides.quick, sound);
    if faults.count() > before {
        return None;
    }
    let origins = Origins::new(
        sources,
        limits,
        link_spans,
        flows.last,
        file.span_of("sample"),
        file.span_of(DURATION),
    );
    Some(Loaded { scenario, origins })
}

/// A title is a line: what is printed below it is not the file's to say.
fn one_line(text: &str) -> String {
    if text.contains(['\n', '\r']) {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    } else {
        text.into()
    }
}

fn list_length(item: Option<&Item>) -> usize {
    match item {
        Some(Item { value: Value::Array(items), .. }) => items.len(),
        _ => usize::MAX,
    }
}

/// Names of the flows a variant leaves out.
fn without(file: &Fields<'_>, variant: &Variant, faults: &Faults) -> HashSet<String> {
    let known: Vec<String> = match file.item("flow") {
        Some(Item { value: Value::Array(items), .. }) => items
            .iter()
            .filter_map(|i| match &i.value {
                Value::Table(t) => set::name_of(t, &FLOW),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    for (name, span) in &variant.without {
        if !known.contains(name) {
            faults.add(
                *span,
                format!("no flow is named `{name}`"),
                suggest(name, known.iter().map(String::as_str), "flows"),
            );
        }
    }
    variant.without.iter().map(|(name, _)| name.clone()).collect()
}

/// At most this many samples: more is a slip of the pen, and would fill the memory of any machine.
const MAX_SAMPLES: u64 = 10_000_000;

fn sample(file: &Fields<'_>, duration: Nanos, largest_rtt: Nanos) -> Sampling {
    let Some(item) = file.item("sample") else { return Sampling::Every(default_sample(duration)) };
    let interval = match &item.value {
        Value::Text(text) if text == "off" => return Sampling::Off,
        Value::Text(text) if text == "rtt" => {
            if largest_rtt == 0 {
                file.faults.add(
                    item.span,
                    "no flow has a round-trip time on which to base the sampling",
                    "write a time, like \"100ms\"",
                );
                return Sampling::Off;
            }
            largest_rtt
        }
        _ => match file.time_of(item, "sample", false) {
            Some(interval) => interval,
            None => return Sampling::Off,
        },
    };
    if duration / interval > MAX_SAMPLES {
        let what =
            format!("{} samples in {} are too many", duration / interval, show_time(duration));
        let help = format!(
            "at most {MAX_SAMPLES} can be taken; \"{}\" is usual for a run of this length",
            show_time(default_sample(duration))
        );
        file.faults.add(item.span, what, help);
    }
    if matches!(&item.value, Value::Text(text) if text == "rtt") {
        Sampling::PerRtt(interval)
    } else {
        Sampling::Every(interval)
    }
}

/// The largest of 1, 2, 5, 10, ... ms that gives at least 600 samples; at least 1 ms.
fn default_sample(duration: Nanos) -> Nanos {
    let mut best = 1_000_000;
    let mut decade: Nanos = 1_000_000;
    while decade <= duration / 600 {
        for step in [1, 2, 5] {
            if step * decade <= duration / 600 {
                best = step * decade;
            }
        }
        decade *= 10;
    }
    best
}
