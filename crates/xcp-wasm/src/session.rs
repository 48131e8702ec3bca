//! Answers a page's requests, and keeps the last run for those that come after it.
//!
//! Numbers that are many do not go through JSON: the answer says where they lie, and whoever has
//! asked copies them before the next request.

use std::path::Path;

use serde_json::{Value, json};
use xcp_model::packet_hops;
use xcp_model::record::Recorder;
use xcp_model::run::{Quantity, Run, Subject};
use xcp_model::units::{NANOS_PER_SEC, Nanos};
use xcp_model::{
    Congestion, Direction, Discipline, Limit, Recovery, Sampling, Scenario, Tcp, Traffic, XcpSender,
};
use xcp_report::csv::{self, Kind};
use xcp_report::json::Told;
use xcp_report::plot::{self, Wanted, figure};
use xcp_scenario::rewrite::{rewrite, written};
use xcp_scenario::{
    CONGESTIONS, Loaded, Overrides, QUEUES, ScenarioError, check, footprint, load_with_origins,
    variant_names,
};

use crate::request::Request;
use crate::trace::{DIRECTIONS, Trace, Tracer};

/// What a page gives a run besides the scenario.
pub trait Page {
    /// Whether the run is to go on.
    fn wants_to_go_on(&mut self) -> bool;
    /// A sampling interval has ended; here is what there is.
    fn partial(&mut self, now: Nanos, scenario: &Scenario, recorder: &Recorder<'_>);
}

/// A page that only waits for the end.
impl Page for () {
    fn wants_to_go_on(&mut self) -> bool {
        true
    }
    fn partial(&mut self, _: Nanos, _: &Scenario, _: &Recorder<'_>) {}
}

/// Memory that a run may take by the reader's estimate: a phone's browser gives a page a gigabyte
/// or so.
const MEMORY: u64 = 768 << 20;
/// Flows whose series a page gets.
const FLOWS: usize = 8;

/// What is kept from request to request.
#[derive(Debug, Default)]
pub struct Session {
    last: Option<(Run, Trace, Vec<f64>, Vec<PageSeries>)>,
}

/// Where an array lies.
fn place<T>(values: &[T]) -> Value {
    json!([values.as_ptr() as usize, values.len()])
}

/// A series as a page reads it: one number beside the other.
pub type PageSeries = (Subject, Quantity, Vec<f64>);

/// Series as a page gets them: whose, which and where.
pub(crate) fn series_places(series: &[PageSeries]) -> Vec<Value> {
    let place = |(subject, quantity, values): &PageSeries| match subject {
        Subject::Link(name) => json!(["link", name, quantity.column(), place(values)]),
        Subject::Flow(name) => json!(["flow", name, quantity.column(), place(values)]),
    };
    series.iter().map(place).collect()
}

/// The series of a recorder that a page gets.
pub fn so_far<'a>(
    scenario: &'a Scenario,
    recorder: &'a Recorder<'_>,
) -> impl Iterator<Item = PageSeries> + 'a {
    let series = recorder.link_series().map(|(name, q, v)| (Subject::Link(name.into()), q, v));
    let flows = recorder.flow_series().take_while(|(number, ..)| *number < FLOWS);
    let name = |number: usize| Subject::Flow(scenario.flows[number].name().to_string());
    let shown = shown_links(scenario);
    series
        .filter(move |(subject, ..)| matches!(subject, Subject::Link(name) if shown.contains(name)))
        .chain(flows.map(move |(number, q, v)| (name(number), q, v)))
        .map(|(subject, quantity, values)| (subject, quantity, values.to_vec()))
}

fn shown_links(scenario: &Scenario) -> Vec<String> {
    let both = |name: &str| [name.to_owned(), format!("{name}.reverse")];
    scenario.links.iter().flat_map(|link| both(&link.name)).take(DIRECTIONS).collect()
}

pub(crate) fn seconds(t: Nanos) -> f64 {
    t as f64 / NANOS_PER_SEC as f64
}

impl Session {
    /// Answers a request of the page with JSON.
    pub fn answer(&mut self, request: &str, page: &mut dyn Page) -> String {
        let request = match serde_json::from_str(request) {
            Ok(request) => request,
            Err(e) => return failed(&e.to_string()).to_string(),
        };
        let answer = match request {
            Request::Read { name, text, written } => read(&name, &text, &written),
            Request::Set { text, changes, name, written } => {
                let mut answer = changed(text, &changes);
                if let (Some(name), Some(text)) = (name, answer["text"].as_str())
                    && answer["ok"] == true
                {
                    answer["read"] = read(&name, text, &written);
                }
                answer
            }
            Request::Run { name, text, variant, most_hops, packets } => {
                self.run(&name, &text, variant, most_hops, packets, page)
            }
            Request::Csv { table } => self.csv(&table),
            Request::Figure { name, text, quantity, link, most_hops } => {
                drawn(&name, &text, &quantity, link.as_deref(), most_hops, page)
            }
        };
        answer.to_string()
    }

    fn run(
        &mut self,
        name: &str,
        text: &str,
        variant: usize,
        most_hops: f64,
        packets: bool,
        page: &mut dyn Page,
    ) -> Value {
        self.last = None;
        let names = variant_names(text);
        let only = match names.get(variant) {
            Some(name) if !name.is_empty() => Overrides::none().only(std::slice::from_ref(name)),
            _ => Overrides::none(),
        };
        let first = match load_with_origins(Path::new(name), text, &only) {
            Ok(loaded) => loaded.into_iter().next().filter(|_| variant < names.len()),
            Err(error) => return wrong(&error),
        };
        let Some(Loaded { scenario, origins }) = first else {
            return failed("there is no such variant");
        };
        if let Err(error) = check(&scenario, &origins, MEMORY) {
            return wrong(&error);
        }
        if let Err(text) = affordable(&[&scenario], most_hops) {
            return text;
        }
        let mut tracer = Tracer::new(&scenario, page, packets);
        let run = match xcp_sim::simulate_watched(&scenario, &mut tracer) {
            Ok(run) => run,
            Err(error) => return failed(&error.to_string()),
        };
        let trace = std::mem::take(&mut tracer.trace);
        let times = run.series.first().map_or_else(Vec::new, |series| {
            series.times.iter().map(|&t| seconds(t)).collect::<Vec<f64>>()
        });
        let shown = shown_links(&scenario);
        let flows: Vec<String> =
            scenario.flows.iter().take(FLOWS).map(|f| f.name().to_string()).collect();
        let series = run.series.iter().filter(|series| match &series.subject {
            Subject::Link(name) => shown.contains(name),
            Subject::Flow(name) => flows.contains(name),
        });
        let series = series.map(|s| (s.subject.clone(), s.quantity, s.values.to_vec())).collect();
        let (run, trace, times, series) = self.last.insert((run, trace, times, series));
        json!({
            "ok": true,
            // The very text that `xcpnet run --json` prints.
            "json": serde_json::to_string(&Told::from(&run.summary)).unwrap_or_default(),
            "completed": seconds(run.completed),
            "times": place(times),
            "series": series_places(series),
            "packets": packets.then(|| json!({
                "oneIn": trace.one_in,
                "directions": shown,
                "frames": place(&trace.frames),
                "waiting": place(&trace.waiting),
                "left": place(&trace.left),
                "arrives": place(&trace.arrives),
                "direction": place(&trace.direction),
                "flow": place(&trace.flow),
                "look": place(&trace.look),
            })),
        })
    }

    fn csv(&self, table: &str) -> Value {
        let Some((run, ..)) = &self.last else { return failed("nothing has been run yet") };
        let Some(kind) = [Kind::Links, Kind::Flows].into_iter().find(|k| k.name() == table) else {
            return failed("there is no such table");
        };
        let mut out = Vec::new();
        match csv::write(run, kind, &mut out) {
            Ok(()) => json!({ "ok": true, "text": String::from_utf8_lossy(&out) }),
            Err(error) => failed(&error.to_string()),
        }
    }
}

fn load(name: &str, text: &str) -> Result<Vec<Loaded>, ScenarioError> {
    load_with_origins(Path::new(name), text, &Overrides::none())
}

fn failed(text: &str) -> Value {
    json!({ "ok": false, "text": text })
}

fn wrong(error: &ScenarioError) -> Value {
    json!({ "ok": false, "text": error.to_string(), "problems": error.problems() })
}

/// Refuses what would take too long here.
fn affordable(scenarios: &[&Scenario], most_hops: f64) -> Result<(), Value> {
    let hops: f64 = scenarios.iter().map(|s| packet_hops(s)).sum();
    if hops <= most_hops {
        return Ok(());
    }
    let mut refusal = failed(&format!(
        "about {:.0} million packets times links, more than this page runs without asking: \
         shorten `duration`, or lower a rate",
        hops / 1e6
    ));
    refusal["hops"] = json!(hops);
    Err(refusal)
}

fn read(name: &str, text: &str, paths: &[String]) -> Value {
    let loaded = match load(name, text) {
        Ok(loaded) => loaded,
        Err(error) => return wrong(&error),
    };
    let variants: Vec<Value> =
        loaded.iter().map(|one| variant(&one.scenario, text, paths)).collect();
    let first = loaded.first().map(|one| &one.scenario);
    json!({
        "ok": true,
        "title": first.map(|s| s.title.as_str()),
        "description": first.map(|s| s.description.as_str()),
        "variants": variants,
        "congestions": CONGESTIONS,
        "queues": QUEUES,
        "laws": xcp_model::Preset::WORDS,
    })
}

/// What a page shows of a variant before it runs.
fn variant(scenario: &Scenario, text: &str, paths: &[String]) -> Value {
    let links: Vec<Value> = scenario
        .links
        .iter()
        .take(DIRECTIONS / 2)
        .map(|link| {
            let forth = &link.directions[0];
            json!({
                "name": link.name,
                "ends": link.ends,
                "rate": forth.rate_bps,
                "delay": seconds(forth.delay),
                "queue": forth.queue.discipline.name(),
                "law": law(&forth.queue.discipline),
                "limit": limit_packets(forth, scenario),
                "loss": forth.losses.iter().map(|l| l.probability).fold(0.0, f64::max),
            })
        })
        .collect();
    let groups: Vec<Value> = scenario
        .groups()
        .map(|flows| {
            let group = &flows[0].group;
            let congestion = match &group.traffic {
                Traffic::Tcp(tcp) => Some(word(tcp)),
                Traffic::Udp(_) => None,
            };
            json!({
                "name": &*group.name,
                "from": group.from,
                "to": group.to,
                "count": flows.len(),
                "congestion": congestion,
                "route": group.route,
            })
        })
        .collect();
    let own = |path: &String| (path.clone(), json!(written(text, &scenario.variant, path)));
    json!({
        "name": scenario.variant,
        "hops": packet_hops(scenario),
        "duration": seconds(scenario.duration),
        "measure": [seconds(scenario.measure.from), seconds(scenario.measure.to)],
        "seed": scenario.seed,
        "nodes": scenario.nodes,
        "links": links,
        "linksInAll": scenario.links.len(),
        "groups": groups,
        "main": main_link(scenario),
        "sampled": scenario.sample != Sampling::Off,
        "written": paths.iter().map(own).collect::<serde_json::Map<_, _>>(),
    })
}

/// The word of the scenario's language that comes nearest to what a flow does: more than its
/// congestion control's name, as one word says with which sender or recovery, too.
fn word(tcp: &Tcp) -> &str {
    match (&tcp.congestion, tcp.xcp_sender, tcp.recovery) {
        (Congestion::Xcp, XcpSender::Robust, _) => "xcp-robust",
        (Congestion::Reno, _, Recovery::NewRenoImpatient | Recovery::NewRenoSlowButSteady) => {
            "newreno"
        }
        (Congestion::Reno, _, Recovery::Sack | Recovery::SackLinux) => "sack",
        (congestion, ..) => congestion.name(),
    }
}

/// The law from which an XCP router's settings start.
fn law(discipline: &Discipline) -> Option<&'static str> {
    match discipline {
        Discipline::Xcp(router) => Some(router.law.preset.name()),
        _ => None,
    }
}

/// What a queue holds, in the packets of the scenario's first flow.
fn limit_packets(direction: &Direction, scenario: &Scenario) -> f64 {
    let size = scenario.flows.first().map_or(1500, |flow| flow.group.packet_bytes);
    match direction.queue.limit {
        Limit::Packets(n) => n as f64,
        Limit::Bytes(n) => n as f64 / f64::from(size),
    }
}

/// The direction that a reader wants to see first: of those that data crosses, the one with the
/// least rate to each flow.
fn main_link(scenario: &Scenario) -> Option<usize> {
    let mut load = vec![0usize; 2 * scenario.links.len()];
    for flow in &scenario.flows {
        flow.group.route.iter().for_each(|&d| load[d] += 1);
    }
    let share = |d: usize| scenario.links[d / 2].directions[d % 2].rate_bps as f64 / load[d] as f64;
    (0..load.len()).filter(|&d| load[d] > 0).min_by(|&a, &b| share(a).total_cmp(&share(b)))
}

fn changed(mut text: String, changes: &[crate::request::Change]) -> Value {
    for change in changes {
        match rewrite(&text, change.variant.as_deref(), &change.path, &change.value) {
            Ok(new) => text = new,
            Err(error) => return failed(&error.to_string()),
        }
    }
    json!({ "ok": true, "text": text })
}

/// One figure of all variants.
fn drawn(
    name: &str,
    text: &str,
    quantity: &str,
    link: Option<&str>,
    most_hops: f64,
    page: &mut dyn Page,
) -> Value {
    let loaded = match load(name, text) {
        Ok(loaded) => loaded,
        Err(error) => return wrong(&error),
    };
    // One after the other, but what comes of each is kept until all are done.
    let kept = |one: &Loaded| footprint(&one.scenario).kept;
    let kept_in_all: u128 = loaded.iter().map(kept).sum();
    for one in &loaded {
        let others = u64::try_from(kept_in_all - kept(one)).unwrap_or(u64::MAX);
        if let Err(error) = check(&one.scenario, &one.origins, MEMORY.saturating_sub(others)) {
            return wrong(&error);
        }
    }
    let scenarios: Vec<Scenario> = loaded.into_iter().map(|one| one.scenario).collect();
    if let Err(text) = affordable(&scenarios.iter().collect::<Vec<_>>(), most_hops) {
        return text;
    }
    let mut runs = Vec::new();
    for scenario in &scenarios {
        match xcp_sim::simulate_watched(scenario, &mut Tracer::new(scenario, page, false)) {
            Ok(run) => runs.push(run),
            Err(error) => return failed(&error.to_string()),
        }
    }
    let wanted = Wanted { kind: plot::Kind::Series, quantity: Some(quantity), link };
    match figure(&runs, &scenarios, &wanted) {
        Ok(figure) => json!({ "ok": true, "text": figure.svg() }),
        Err(error) => failed(&error.to_string()),
    }
}
