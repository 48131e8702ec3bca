//! `xcpnet pep`.

mod up;

use std::time::{Duration, Instant};

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use xcp_linux::error::is_root;
use xcp_linux::namespace::{Called, Namespace};
use xcp_pep::gateway::found::{Found, take_back_leftovers};
use xcp_pep::gateway::look::{Finding, Standing};
use xcp_pep::gateway::owner::{UNNAMED, owners};
use xcp_pep::gateway::state::{Place, start_time};
use xcp_pep::gateway::wan::DEFAULT_LAW;
use xcp_pep::options::{self, Options};
use xcp_pep::run::{self, Command};
use xcp_pep::share::Share;
use xcp_report::human;

use self::up::ToStarter;
use super::{namespace, watched};
use crate::cli::given::Given;
use crate::cli::{PepArguments, PepCommand, PepRun, PepWhich};
use crate::failure::{Failure, LACKING};
use crate::output::Printer;
use crate::terminal::{self, Plain};

/// How long a process may take to end beyond the time its connections are given, and its keeper to
/// undo what it has set up.
const GRACE: Duration = Duration::from_secs(10);
/// Characters of a proxy's name: it is part of a path, and of a comment in the packet filter.
const LONGEST_NAME: usize = 64;

/// Does what was asked.
pub fn pep(arguments: &PepArguments, printer: &mut Printer) -> Result<(), Failure> {
    match &arguments.command {
        PepCommand::Run(run) => foreground(run),
        PepCommand::Up(run) => background(run, printer),
        PepCommand::Check { run, json } => check(run, *json, printer),
        PepCommand::Down { which, now } => down(which, *now, printer),
        PepCommand::Show { which, json, watch } => {
            let place = enter(which)?;
            watched(*watch, printer, || shown(&place, &which.name, *json))
        }
        PepCommand::Reload { which } => told(&enter(which)?, &which.name, "reload", printer),
        PepCommand::Rate { which, rates } => {
            let place = enter(which)?;
            let (device, rates) = match &rates[..] {
                [first, rest @ ..] if !rest.is_empty() && xcp_law::typed::rate(first).is_err() => {
                    (Some(first), rest)
                }
                all => (None, all),
            };
            if let [_, _, more, ..] = rates {
                return Err(Failure::new(format!(
                    "\"{}\" is a rate and not a device, so \"{more}\" is one rate too many: give \
                     OUT [IN], or DEV OUT [IN]",
                    rates[0]
                )));
            }
            let order = format!("rate {}", rates.join(" "));
            match device {
                None => told(&place, &which.name, &order, printer),
                Some(device) => {
                    let owner = owners()?.into_iter().find(|owner| owner.wan == *device);
                    let owner = owner.ok_or_else(|| {
                        Failure::new(format!(
                            "no proxy is running here for {device}; `{} link` lists the devices",
                            Called::entered().command("ip")
                        ))
                    })?;
                    let which = PepWhich { netns: None, name: owner.name.clone() };
                    told(&enter(&which)?, &which.name, &order, printer)
                }
            }
        }
    }
}

/// Goes into the network namespace, so that everything that follows is there.
fn enter(which: &PepWhich) -> Result<Place, Failure> {
    let there = match which.netns.as_deref() {
        None => namespace(None)?,
        Some(name) => {
            let there = namespace(Some(name))?;
            there.enter().map_err(Failure::new)?;
            Namespace::current().map_err(Failure::new)?
        }
    };
    if which.name.is_empty()
        || which.name.len() > LONGEST_NAME
        || !which.name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    {
        return Err(Failure::new(format!(
            "--name: \"{}\" is not a valid name for a proxy; a name has from 1 to {LONGEST_NAME} \
             letters, digits, -, _ and .",
            which.name
        )));
    }
    Ok(Place::of(&there, &which.name))
}

fn typed(run: &PepRun) -> Options {
    let given = |yes: bool| yes.then_some(true);
    Options {
        wan: run.wan.clone(),
        lan: run.lan.clone(),
        rate: run.rate.clone(),
        rate_in: run.rate_in.clone(),
        rtt: run.rtt.clone(),
        mss: run.mss,
        law: run.law.clone(),
        share: run.share.clone(),
        urgent: run.urgent.clone(),
        exclude: run.exclude.clone(),
        listen: run.listen.clone(),
        allow: run.allow.clone(),
        allow_target: run.allow_target.clone(),
        metrics: run.metrics,
        no_early: given(run.no_early),
        confirm: given(run.confirm),
        trunk: run.trunk.clone(),
        trunk_listen: run.trunk_listen.clone(),
        trunk_warm: run.trunk_warm,
        trunk_encrypt: given(run.trunk_encrypt),
        secret_file: run.secret_file.as_ref().map(|f| std::path::absolute(f).unwrap_or(f.clone())),
        workers: run.workers,
        connections: run.connections,
        memory: run.memory.clone(),
        held: run.held.clone(),
        idle: run.idle.clone(),
        keepalive: run.keepalive.clone(),
        rto_max: run.rto_max.clone(),
        drain: run.drain.clone(),
        fallback: run.fallback.clone(),
        initial_window: run.initial_window,
        user: run.user.clone(),
        log: run.log.clone(),
        log_json: given(run.log_json),
    }
}

/// Does something with the options of a proxy, and tells what is wrong with those of its file as
/// the file's.
fn with_options<T>(
    run: &PepRun,
    work: impl FnOnce(&Command) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let command = command(run)?;
    work(&command).map_err(|failure| {
        let Some(file) = &command.file else { return failure };
        let names = |of: &Options| -> Vec<String> {
            Options::default().differences(of).into_iter().map(|(name, _)| name).collect()
        };
        let typed = names(&command.typed);
        let from_file = names(&command.options).into_iter().filter(|name| !typed.contains(name));
        Given::by(file, from_file).told(failure)
    })
}

fn command(run: &PepRun) -> Result<Command, Failure> {
    let typed = typed(run);
    let usual = options::usual_file();
    let file = run.config.clone().or_else(|| usual.is_file().then_some(usual));
    // The process goes to another directory.
    let file = file.map(|file| std::path::absolute(&file).unwrap_or(file));
    let options = match &file {
        None => typed.clone(),
        Some(file) => typed.clone().over(Options::load(file)?),
    };
    Ok(Command {
        options,
        typed,
        file,
        name: run.which.name.clone(),
        log_file: run.in_background.clone(),
    })
}

/// Everything that can be known before, and nothing done.
fn check(run: &PepRun, json: bool, printer: &mut Printer) -> Result<(), Failure> {
    let (found, warnings) = with_options(run, |command| {
        enter(&run.which)?;
        let found = run::check(&command.options, &run.which.name)?;
        Ok((found, command.options.warnings()))
    })?;
    if json {
        printer
            .line(&serde_json::json!({ "findings": found, "warnings": warnings }).to_string())?;
    } else {
        for Finding { name, standing, found, remedy } in &found {
            let word = match standing {
                Standing::Ok => "ok",
                Standing::Warning => "warning",
                Standing::InTheWay => "in the way",
            };
            printer.line(&format!("{word:<10}  {name:<10}  {found}"))?;
            if let Some(remedy) = remedy {
                printer.line(&format!("{:<24}do: {remedy}", ""))?;
            }
        }
        for warning in &warnings {
            printer.line(&format!("{:<10}  {warning}", "warning"))?;
        }
    }
    match found.iter().filter(|finding| finding.standing == Standing::InTheWay).count() {
        0 => Ok(()),
        count => Err(Failure::with_status(
            format!("{} in the way of the proxy", human::plural(count as u64, "thing")),
            LACKING,
        )),
    }
}

/// Logs go to stderr; warnings, whatever is logged, also to whoever waits for a proxy in the
/// background to come up.
fn log(options: &Options, in_background: bool) -> Result<(), Failure> {
    let to = fmt::layer().with_writer(|| Plain::new(std::io::stderr())).with_target(false);
    let to = if options.log_json == Some(true) {
        to.json().boxed()
    } else {
        to.with_ansi(false).boxed()
    };
    let told = in_background.then(|| {
        let bare = fmt::layer().without_time().with_level(false).with_target(false);
        bare.with_ansi(false).with_writer(|| ToStarter).with_filter(LevelFilter::WARN)
    });
    let level = options.log_level()?;
    let _ = tracing_subscriber::registry().with(to.with_filter(level)).with(told).try_init();
    Ok(())
}

fn foreground(run: &PepRun) -> Result<(), Failure> {
    let in_background = run.in_background.is_some();
    let ended = with_options(run, |command| {
        log(&command.options, in_background)?;
        enter(&run.which)?;
        Ok(run::run(command)?)
    });
    if in_background {
        let _ = ended.as_ref().map_err(up::tell_starter);
    }
    ended
}

fn background(run: &PepRun, printer: &mut Printer) -> Result<(), Failure> {
    // What is wrong with the options is told before anything is done.
    with_options(run, |command| up::up(command, &enter(&run.which)?, printer))
}

/// Tells a proxy to do something, and what came of it.
fn told(place: &Place, name: &str, order: &str, printer: &mut Printer) -> Result<(), Failure> {
    let answer = run::ask(place, name, order)?;
    printer.line(answer["done"].as_str().unwrap_or("done"))
}

/// Tells it to end; with SIGKILL it does not have a choice.
fn signal(pid: u32, signal: i32) -> Result<(), Failure> {
    // SAFETY: a signal to a process that was seen to be the proxy's a moment ago.
    let done = unsafe { libc::kill(pid as i32, signal) };
    let why = std::io::Error::last_os_error();
    // It may have ended since.
    if done < 0 && why.raw_os_error() != Some(libc::ESRCH) {
        return Err(Failure::new(format!("cannot notify process {pid}: {why}; run it as root")));
    }
    Ok(())
}

/// Waits for the end of a process, for no longer than a limit. Whether it has ended.
fn ends((pid, start): (u32, u64), limit: Duration) -> bool {
    let begin = Instant::now();
    while start_time(pid) == Some(start) {
        if begin.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Ends a proxy at once, whether it answers or not.
fn end_now(process: (u32, u64)) -> Result<(), Failure> {
    let (pid, _) = process;
    let until = Instant::now() + GRACE;
    while Instant::now() < until {
        // The second one ends it at once; but of two that wait to be read, the kernel makes one.
        signal(pid, libc::SIGTERM)?;
        if ends(process, Duration::from_millis(100)) {
            return Ok(());
        }
    }
    terminal::tell(&format!(
        "warning: the proxy (process {pid}) has not ended within {} s, and is killed",
        GRACE.as_secs()
    ));
    signal(pid, libc::SIGKILL)?;
    if ends(process, GRACE) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "process {pid} does not end although it was killed: it is waiting in the kernel \
         (`cat /proc/{pid}/stack` says for what); run this again when it has ended"
    )))
}

fn down(which: &PepWhich, now: bool, printer: &mut Printer) -> Result<(), Failure> {
    let place = enter(which)?;
    let found = Found::look(&place, &which.name);
    if found.is_nothing() {
        // Whoever is not root has set none up.
        let left = if is_root() { take_back_leftovers()? } else { 0 };
        if left == 0 && which.name != UNNAMED && !found.others.is_empty() {
            return Err(Failure::new(found.why_silent()));
        }
        return printer.line(&match left {
            0 => found.why_silent(),
            _ => taken_back(left),
        });
    }
    if let Some(process) = found.living {
        signal(process.0, libc::SIGTERM)?;
        if now {
            end_now(process)?;
        } else if !ends(process, GRACE) {
            // It knows how long to wait; its connections are shown meanwhile by `pep show`. But one
            // that does not answer may never end.
            if let Err(why) = run::ask(&place, &which.name, "show")
                && !ends(process, Duration::ZERO)
            {
                terminal::tell(&format!("warning: {why}"));
            }
            ends(process, Duration::MAX);
        }
    }
    // Its keeper cleans up. Where that is gone, too, this does.
    let until = Instant::now() + GRACE;
    let keeper_works = || place.path().exists() || Found::look(&place, &which.name).owner.is_some();
    while found.living.or(found.owner.as_ref().map(|o| (o.pid, o.start))).is_some()
        && keeper_works()
        && Instant::now() < until
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    place.clean()?;
    // The kernel may have taken an owner's table away only now: who was killed with keeper and
    // directory has left rules that nobody else knows of.
    let unknown = found.living.is_none() && found.state.is_none() && is_root();
    let left = if unknown { take_back_leftovers()? } else { 0 };
    printer.line(&if left == 0 { "the proxy is down".to_owned() } else { taken_back(left) })
}

/// What is said where rules were found that nobody owns.
fn taken_back(rules: usize) -> String {
    let here = Called::entered();
    format!(
        "no proxy is running; what a killed one left behind was removed: {}. Nothing is known any \
         more about the shaper and the sysctls that it may have set: check with `{} qdisc` and \
         `{} -a`",
        human::plural(rules as u64, "routing rule"),
        here.command("tc"),
        here.command("sysctl")
    )
}

/// What `pep show --json` prints of each gateway of the namespace that this thread is in; of one
/// that does not answer, why.
pub(super) fn readings(namespace: &Namespace) -> Result<serde_json::Value, Failure> {
    let of = |owner: xcp_pep::gateway::owner::Owner| {
        let asked = run::ask(&Place::of(namespace, &owner.name), &owner.name, "show");
        let mut answer = asked.unwrap_or_else(|e| serde_json::json!({ "error": e.to_string() }));
        answer["name"] = owner.name.into();
        answer["wan"] = owner.wan.into();
        answer
    };
    Ok(serde_json::Value::Array(owners()?.into_iter().map(of).collect()))
}

fn shown(place: &Place, name: &str, json: bool) -> Result<String, Failure> {
    let answer = run::ask(place, name, "show")?;
    if json {
        return Ok(format!("{answer}\n"));
    }
    let connections = answer["connections"].as_array().map_or(&[][..], Vec::as_slice);
    let mut out = format!(
        "the proxy (process {}) carries {}; {} could not reach their server{}\n",
        answer["pid"],
        human::plural(connections.len() as u64, "connection"),
        human::plural(answer["unreached"].as_u64().unwrap_or(0), "connection"),
        if answer["draining"] == true { "; it is stopping, and accepts no new ones" } else { "" }
    );
    let gateway = &answer["gateway"];
    if gateway.is_object() {
        for finding in gateway["in_the_way"].as_array().into_iter().flatten() {
            out.push_str(&format!(
                "  new connections hang: {}; {}\n",
                finding["found"].as_str().unwrap_or_default(),
                finding["remedy"].as_str().unwrap_or_default()
            ));
        }
        out.push_str(&format!("  long link {}", gateway["wan"].as_str().unwrap_or_default()));
        if gateway["wan_is_there"] == false {
            out.push_str(": the device is gone; everything on it is set up again when it is back");
        } else if let Some(capacity) = gateway["capacity"].as_f64() {
            let input = gateway["input_traffic"].as_f64().unwrap_or(0.0);
            out.push_str(&format!(
                ": {} of {} in use, {:.0} bytes queued",
                human::rate(input),
                human::rate(capacity),
                gateway["persistent_queue"].as_f64().unwrap_or(0.0)
            ));
        }
        // Other senders go by whatever law their router has, and here there is none.
        let matters = |law: &&str| *law == DEFAULT_LAW.name() || gateway["capacity"].is_f64();
        if let Some(law) = gateway["law"].as_str().filter(matters) {
            out.push_str(&format!(", by the law {law}"));
        }
        let usual = Share::default().to_string();
        if let Some(share) = gateway["share"].as_str().filter(|share| *share != usual) {
            out.push_str(&format!(", shared by {share}"));
        }
        let urgent = &gateway["urgent"];
        if let Some(bound) = urgent["bound"].as_str() {
            out.push_str(&format!(
                "\n  urgent, {bound}: {} packets went first, {} exceeded the limit",
                urgent["packets"], urgent["excess"]
            ));
        }
        let endpoint = &gateway["endpoint"];
        out.push_str(&format!(
            "\n  legs by XCP: {}; legs that fell back to another congestion control: {}\n",
            endpoint["agreed"], endpoint["fallen_peer"]
        ));
        let trunk = &gateway["trunk"];
        if trunk.is_object() {
            out.push_str(&format!(
                "  trunk to {}{}: {} of {} connections are open, and {} of the other gateway's; \
                 {} were used, {} clients found none left, {} came with the other gateway's \
                 clients, {} connection attempts failed\n",
                trunk["peer"].as_str().unwrap_or_default(),
                if trunk["encrypted"] == true { ", encrypted" } else { "" },
                trunk["warm"],
                trunk["wanted"],
                trunk["answered"],
                trunk["used"],
                trunk["missed"],
                trunk["carried"],
                trunk["failed"]
            ));
        }
        let openings = &gateway["confirm"];
        if openings.is_object() {
            out.push_str(&format!(
                "  attempts held: {}; confirmed: {}, refused: {}, unreachable: {}, silent: {}, \
                 given up: {}\n",
                openings["holding"],
                openings["confirmed"],
                openings["refused"],
                openings["unreachable"],
                openings["silent"],
                openings["given_up"]
            ));
        }
    }
    for c in connections {
        out.push_str(&row(c));
    }
    Ok(out)
}

fn row(c: &serde_json::Value) -> String {
    let leg = |leg: &serde_json::Value| {
        if leg.is_null() {
            return "-".to_owned();
        }
        format!("rtt {} cwnd {}", human::nanos(leg["srtt_ns"].as_u64().unwrap_or(0)), leg["cwnd"])
    };
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("?").to_owned();
    format!(
        "{} -> {}  {}, {}, age {}\n  to server {} bytes, to client {}; client leg {}; server leg \
            {}\n",
        text(&c["client"]),
        text(&c["server"]),
        text(&c["kind"]) + if c["by_trunk"] == true { " through the trunk" } else { "" },
        text(&c["state"]),
        human::nanos(c["age_ns"].as_u64().unwrap_or(0)),
        c["to_server"],
        c["to_client"],
        leg(&c["client_leg"]),
        leg(&c["server_leg"]),
    )
}
