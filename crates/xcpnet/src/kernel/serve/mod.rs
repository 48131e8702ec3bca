//! `xcpnet serve`: a page on which an operator sees routers, endpoint and proxies of this machine
//! while they work. Looks every second ([`readings`]), keeps an hour of it, and answers those who
//! have the token ([`door`]): the page, server-sent events, Prometheus ([`metrics`]). It changes
//! nothing, and no request can make it, unless it is started with `--lab`: then scenarios can be
//! run from the page ([`work`]).

mod door;
mod metrics;
mod readings;
mod work;

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::namespace;
use crate::cli::ServeArguments;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::Printer;

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// Looks that are kept.
const HOUR: usize = 3600;

/// What was seen, for whoever asks.
#[derive(Debug, Default)]
pub struct Seen {
    now: Mutex<Now>,
    more: Condvar,
}

#[derive(Debug, Default)]
struct Now {
    /// Looks so far.
    number: u64,
    /// The last, as the page gets it.
    last: Arc<str>,
    reading: Arc<Value>,
    /// Of each look of the last hour the numbers that curves are drawn of.
    hour: VecDeque<Arc<str>>,
}

impl Seen {
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, reading: Value) {
        let text = reading.to_string().into();
        let short = readings::short(&reading).to_string().into();
        let mut now = self.lock();
        now.number += 1;
        now.last = text;
        now.reading = Arc::new(reading);
        if now.hour.len() == HOUR {
            now.hour.pop_front();
        }
        now.hour.push_back(short);
        drop(now);
        self.more.notify_all();
    }

    /// The last look.
    fn reading(&self) -> Arc<Value> {
        Arc::clone(&self.lock().reading)
    }

    /// Which look is the last, and what is kept of all, as a list.
    fn hour(&self) -> (u64, String) {
        let now = self.lock();
        let all: Vec<&str> = now.hour.iter().map(|look| &**look).collect();
        (now.number, format!("[{}]", all.join(",")))
    }

    /// The look after this one, if it comes soon.
    fn after(&self, number: u64) -> Option<(u64, Arc<str>)> {
        let late = |now: &mut Now| now.number <= number;
        let (now, _) = self
            .more
            .wait_timeout_while(self.lock(), 3 * INTERVAL, late)
            .unwrap_or_else(PoisonError::into_inner);
        (now.number > number).then(|| (now.number, Arc::clone(&now.last)))
    }
}

/// Looks and answers until Ctrl-C.
pub fn serve(arguments: &ServeArguments, printer: &mut Printer) -> Result<(), Failure> {
    let there = namespace(arguments.netns.as_deref())?;
    // The page is served here, wherever what it shows is.
    let work = arguments.lab.then(|| Arc::new(work::Work::default()));
    let door = door::Door::open(arguments.listen, token()?, work.clone())?;
    interrupt::listen()?;
    let seen = Arc::new(Seen::default());
    seen.add(readings::read(&there, seconds()));
    let looking = Arc::clone(&seen);
    std::thread::Builder::new()
        .name("looks".into())
        .spawn(move || {
            // Proxies are found from within their namespace.
            let entered = there.enter().is_ok();
            loop {
                std::thread::sleep(INTERVAL);
                if entered {
                    looking.add(readings::read(&there, seconds()));
                }
            }
        })
        .map_err(|e| Failure::new(format!("cannot start a thread: {e}")))?;
    printer.line(&door.address())?;
    if let Some(unseen) = seen.reading()["unseen"].as_array().filter(|list| !list.is_empty()) {
        for what in unseen.iter().filter_map(Value::as_str) {
            crate::terminal::tell(&format!("not seen: {what}"));
        }
    }
    warn_of_others(arguments);
    door.answer(&seen, interrupt::asked);
    if let Some(work) = work {
        work.end();
    }
    Ok(())
}

/// What goes through a network in the clear can be read there, the token in it.
fn warn_of_others(arguments: &ServeArguments) {
    let listen = arguments.listen;
    if !listen.ip().is_loopback() {
        let can = if arguments.lab { "look and run scenarios" } else { "look" };
        crate::terminal::tell(&format!(
            "{listen} can be reached from elsewhere, and the connection is not encrypted: anybody \
             who reads the address on the way can {can}, too; `ssh -L` is safer"
        ));
    }
}

fn seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64())
}

/// 128 bits that nobody can guess.
fn token() -> Result<String, Failure> {
    Ok(format!("{:016x}{:016x}", super::router::random()?, super::router::random()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_kept_and_no_more() {
        let seen = Seen::default();
        for at in 0..HOUR + 5 {
            seen.add(serde_json::json!({ "at": at, "routers": [], "proxies": [] }));
        }
        let (number, hour) = seen.hour();
        assert_eq!(number, HOUR as u64 + 5);
        let hour: Vec<Value> = serde_json::from_str(&hour).unwrap();
        assert_eq!((hour.len(), hour[0]["at"].as_u64()), (HOUR, Some(5)));
        assert!(seen.after(0).is_some(), "there are later ones than the first");
    }

    #[test]
    fn tokens_differ() {
        let (a, b) = (token().unwrap(), token().unwrap());
        assert_ne!(a, b);
        assert_eq!(a.len(), 32);
    }
}
