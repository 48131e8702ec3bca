//! `xcpnet serve --lab`: what is run from the page. One scenario at a time, within bounds, until it
//! is done or stopped; what came of the last one is kept in memory. The text goes through the
//! scenario reader and nothing else: no file is named in it, no program started.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use xcp_model::Scenario;
use xcp_model::run::{Observer, Run};
use xcp_model::units::{NANOS_PER_SEC, Nanos};
use xcp_model::{evaluate_variants, packet_hops};
use xcp_report::{Report, Source, html, references, table, verdict_table};
use xcp_scenario::{ScenarioError, check, load_with_origins, variant_names};

use crate::cli::Backend;
use crate::failure::Failure;
use crate::interrupt;

/// Bytes of a scenario's text.
pub const TEXT: usize = 256 << 10;
/// Variants of it.
const VARIANTS: usize = 16;
/// Packets times links that may be simulated: a minute or two.
const HOPS: f64 = 5e8;
/// Memory for a run, by the reader's estimate.
const MEMORY: u64 = 1 << 30;
/// Time that a scenario may take on Linux, all variants together, and that anything may take.
const SECONDS: u64 = 600;
const PATIENCE: Duration = Duration::from_secs(900);
/// What a scenario is called whose text came from the page.
const NAME: &str = "scenario.toml";
/// Characters to a line of its tables.
const WIDTH: usize = 110;

/// What is run, and what came of the last.
#[derive(Debug, Default)]
pub struct Work {
    now: Mutex<Now>,
    stop: AtomicBool,
}

#[derive(Debug, Default)]
struct Now {
    /// How many were begun.
    number: u64,
    title: String,
    on: &'static str,
    /// Since when, and its thread; none while nothing runs.
    running: Option<Instant>,
    thread: Option<JoinHandle<()>>,
    /// From 0 to 1.
    share: f64,
    /// In words, of the last: what came of it, or why nothing did.
    text: String,
    failed: bool,
    report: Option<Arc<str>>,
}

/// Why nothing was begun.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// Something is under way.
    Busy,
    /// The scenario is wrong, too much, or cannot be run here; in words.
    Wrong(String),
}

impl Work {
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a scenario, if nothing is under way.
    pub fn begin(self: &Arc<Self>, text: &str, on: Backend) -> Result<Value, Refused> {
        if self.lock().running.is_some() {
            return Err(Refused::Busy);
        }
        // Read before it counts as begun: others may look at what was before meanwhile.
        let scenarios = read(text, on).map_err(Refused::Wrong)?;
        let source = Source { name: NAME.into(), text: text.into() };
        let mut now = self.lock();
        if now.running.is_some() {
            return Err(Refused::Busy);
        }
        self.stop.store(false, Ordering::SeqCst);
        let work = Arc::clone(self);
        let title = scenarios.first().map_or_else(String::new, |s| s.title.clone());
        let thread = std::thread::Builder::new()
            .name("work".into())
            .spawn(move || work.carry_out(&scenarios, source, on))
            .map_err(|e| Refused::Wrong(format!("cannot start a thread: {e}")))?;
        *now = Now {
            number: now.number + 1,
            title,
            on: if on == Backend::Sim { "simulated" } else { "on Linux" },
            running: Some(Instant::now()),
            thread: Some(thread),
            ..Now::default()
        };
        drop(now);
        Ok(self.told())
    }

    /// Asks what is under way to end where it is.
    pub fn stop(&self) -> Value {
        self.stop.store(true, Ordering::SeqCst);
        self.told()
    }

    /// Ends what is under way and waits until it has taken back what it built.
    pub fn end(&self) {
        self.stop();
        let thread = self.lock().thread.take();
        // A run that panicked has said so.
        let _ = thread.map(JoinHandle::join);
    }

    /// How it stands, for the page.
    pub fn told(&self) -> Value {
        let now = self.lock();
        json!({
            "number": now.number,
            "running": now.running.is_some(),
            "title": now.title,
            "on": now.on,
            "share": now.share,
            "text": now.text,
            "failed": now.failed,
            "report": now.report.is_some(),
        })
    }

    /// The last one's report.
    pub fn report(&self) -> Option<Arc<str>> {
        self.lock().report.clone()
    }

    fn carry_out(&self, scenarios: &[Scenario], source: Source, on: Backend) {
        let runs =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.runs(scenarios, on)));
        let (text, failed, report) = match runs {
            Ok(Ok(runs)) => self.shown(scenarios, &runs, source, on),
            Ok(Err(why)) => (why.to_string(), true, None),
            Err(_) => ("it failed unexpectedly".to_owned(), true, None),
        };
        let mut now = self.lock();
        (now.running, now.share, now.text, now.failed) = (None, 1.0, text, failed);
        now.report = report;
    }

    fn runs(&self, scenarios: &[Scenario], on: Backend) -> Result<Vec<Run>, Failure> {
        let all: Nanos = scenarios.iter().map(|s| s.duration).sum();
        let until = Instant::now() + PATIENCE;
        let mut before: Nanos = 0;
        let mut runs = Vec::new();
        for scenario in scenarios {
            let run = on.run(scenario, 1, &mut Watch { work: self, until, before, all })?;
            before += scenario.duration;
            let interrupted = run.summary.interrupted;
            runs.push(run);
            if interrupted {
                break;
            }
        }
        Ok(runs)
    }

    /// Tables and, if all was done, the report.
    fn shown(
        &self,
        scenarios: &[Scenario],
        runs: &[Run],
        source: Source,
        on: Backend,
    ) -> (String, bool, Option<Arc<str>>) {
        let mut text = table(runs, WIDTH);
        for run in runs {
            for note in &run.summary.notes {
                text.push_str(&format!("\nnote: {note}"));
            }
        }
        if runs.len() < scenarios.len() || runs.iter().any(|run| run.summary.interrupted) {
            let why = if self.stop.load(Ordering::SeqCst) {
                "stopped".to_owned()
            } else {
                format!("stopped: more than {} minutes", PATIENCE.as_secs() / 60)
            };
            return (format!("{why}; so far:\n\n{text}"), true, None);
        }
        let verdicts = evaluate_variants(scenarios, runs);
        let judged = verdict_table(runs, &verdicts, WIDTH);
        if !judged.is_empty() {
            text.push_str(&format!("\n{judged}"));
        }
        let on = if on == Backend::Sim { "" } else { " --on linux" };
        let page = html(&Report {
            runs,
            scenarios,
            sources: &[source],
            verdicts: &verdicts,
            references: &references(scenarios),
            command: &format!("xcpnet run {NAME}{on} --out out"),
            playgrounds: &[],
            version: env!("CARGO_PKG_VERSION"),
        });
        (text, false, Some(page.into()))
    }
}

/// Tells how far it is; ends it when it is to end.
struct Watch<'a> {
    work: &'a Work,
    until: Instant,
    /// Scenarios' time that was before this one, and all of it.
    before: Nanos,
    all: Nanos,
}

impl Observer for Watch<'_> {
    fn progress(&mut self, now: Nanos) -> ControlFlow<()> {
        self.work.lock().share = (self.before + now) as f64 / self.all.max(1) as f64;
        let ends = self.work.stop.load(Ordering::SeqCst)
            || interrupt::asked()
            || Instant::now() > self.until;
        if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// A text's scenarios, if they can be run here and are not too much.
fn read(text: &str, on: Backend) -> Result<Vec<Scenario>, String> {
    let said = |error: ScenarioError| error.to_string();
    on.check().map_err(|why| why.to_string())?;
    let variants = variant_names(text).len();
    if variants > VARIANTS {
        return Err(format!(
            "{variants} variants are more than the {VARIANTS} that may be run from a page"
        ));
    }
    let overrides = on.overrides().map_err(|why| why.to_string())?;
    let loaded = load_with_origins(Path::new(NAME), text, &overrides).map_err(said)?;
    let memory = xcp_sweep::memory::available().map_or(MEMORY, |there| MEMORY.min(there / 2));
    for one in &loaded {
        check(&one.scenario, &one.origins, memory).map_err(said)?;
    }
    let scenarios: Vec<Scenario> = loaded.into_iter().map(|one| one.scenario).collect();
    let hops: f64 = scenarios.iter().map(packet_hops).sum();
    if on == Backend::Sim && hops > HOPS {
        return Err(format!(
            "about {:.0} million packets times links are more than the {:.0} million that a page \
             may run; write a shorter `duration` or a lower `rate`, or use `xcpnet run`",
            hops / 1e6,
            HOPS / 1e6
        ));
    }
    let seconds = scenarios.iter().map(|s| s.duration).sum::<Nanos>() / NANOS_PER_SEC;
    if on != Backend::Sim && seconds > SECONDS {
        return Err(format!(
            "{seconds} s on Linux, all variants together, are more than the {SECONDS} that a page \
             may run; write a shorter `duration`, or use `xcpnet run --on linux`"
        ));
    }
    Ok(scenarios)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: &str = r#"
        duration = "2s"
        link = [{ name = "l", between = ["a", "b"], rate = "1mbit", delay = "10ms" }]
        flow = [{ name = "f", from = "a", to = "b", congestion = "cubic" }]
    "#;

    fn wait(work: &Work) -> Value {
        loop {
            let told = work.told();
            if told["running"] == false {
                return told;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_is_wrong_or_too_much_is_told_and_not_begun() {
        let work = Arc::new(Work::default());
        let long = SHORT.replace("1mbit", "100gbit").replace("10ms", "1ms");
        let many: String = (0..20).map(|i| format!("[[variant]]\nname = \"v{i}\"\n")).collect();
        for (text, said) in [
            ("duration = 7".to_owned(), "scenario.toml:1:"),
            (long.replace("2s", "1000s"), "use `xcpnet run`"),
            (format!("{SHORT}{many}"), "20 variants"),
            (SHORT.replace("from = \"a\"", "from = \"a\", count = 100000000"), ""),
        ] {
            match work.begin(&text, Backend::Sim) {
                Err(Refused::Wrong(why)) => assert!(why.contains(said), "{why}"),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(work.told()["number"], 0);
    }

    #[test]
    fn one_at_a_time_and_it_can_be_stopped() {
        let work = Arc::new(Work::default());
        assert_eq!(work.begin(SHORT, Backend::Sim).unwrap()["number"], 1);
        let told = wait(&work);
        assert_eq!((&told["failed"], &told["report"]), (&json!(false), &json!(true)), "{told}");
        assert!(told["text"].as_str().unwrap().contains("utilisation"), "{told}");
        // Half a minute of work, if nobody stopped it.
        let long = SHORT.replace("2s", "4000s").replace("1mbit", "500mbit");
        work.begin(&long, Backend::Sim).unwrap();
        assert_eq!(work.begin(SHORT, Backend::Sim), Err(Refused::Busy));
        assert_eq!(work.told()["report"], false, "the report is not of what was before");
        work.stop();
        let told = wait(&work);
        assert!(told["text"].as_str().unwrap().starts_with("stopped; so far:"), "{told}");
        work.end();
    }
}
