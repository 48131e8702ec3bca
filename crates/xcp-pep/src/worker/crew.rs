//! The workers of a proxy, and the threads that work beside them.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use super::view::View;
use super::{Handle, Order, Worker};
use crate::confirm::{Holder, HolderThread};
use crate::trunk::keeper::{Keeper, KeeperThread};

/// Workers of a proxy, on threads of their own.
#[derive(Debug)]
pub struct Crew {
    handles: Vec<Handle>,
    holder: Option<HolderThread>,
    trunk: Option<KeeperThread>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown")
}

/// Works to the end. Without a worker the proxy is none: its connections are gone, and of those to
/// come it would take its share and leave them lying. So whoever controls the proxy is told.
fn work(number: usize, worker: Worker) {
    let shared = worker.shared.clone();
    // What a panic leaves half done is not looked at any more: the proxy ends.
    match catch_unwind(AssertUnwindSafe(|| worker.run())) {
        Ok(Ok(())) => {}
        Ok(Err(why)) => shared.fail(format!("worker {number} has failed: {why}")),
        Err(panic) => shared.fail(format!("worker {number} panicked: {}", words(&*panic))),
    }
}

impl Crew {
    /// Starts them, what opens legs for them where clients are to be confirmed, and what keeps the
    /// trunk.
    ///
    /// # Errors
    /// No threads.
    pub fn start(
        workers: Vec<Worker>,
        holder: Option<Holder>,
        trunk: Option<Keeper>,
    ) -> io::Result<Self> {
        let handles: Vec<Handle> = workers.iter().map(Worker::handle).collect();
        let threads = workers
            .into_iter()
            .enumerate()
            .map(|(number, worker)| {
                Builder::new().name(format!("pep {number}")).spawn(move || work(number, worker))
            })
            .collect::<io::Result<Vec<_>>>()?;
        let holder = holder.map(Holder::start).transpose()?;
        let trunk = trunk.map(|trunk| trunk.start(handles.clone())).transpose()?;
        Ok(Self { handles, holder, trunk, threads: Mutex::new(threads) })
    }

    /// Every connection there is.
    #[must_use]
    pub fn show(&self) -> Vec<View> {
        let (sender, answers) = channel();
        self.tell(|| Order::Show(sender.clone()));
        drop(sender);
        answers.into_iter().flatten().collect()
    }

    /// Tells all of them.
    pub fn tell(&self, order: impl Fn() -> Order) {
        // Before the listeners go: what it holds passes untouched.
        if let Some(holder) = &self.holder
            && matches!(order(), Order::Drain | Order::Stop)
        {
            holder.end();
        }
        if let Some(trunk) = &self.trunk {
            match order() {
                Order::Drain => trunk.leave(),
                Order::Stop => trunk.end(),
                Order::Resize => trunk.renew(),
                Order::Found(..) | Order::Carry(..) | Order::Show(_) | Order::Early => {}
            }
        }
        self.handles.iter().for_each(|handle| handle.tell(order()));
    }

    /// Stops them and waits for their end. Who failed has said so ([`Shared::fail`]).
    ///
    /// [`Shared::fail`]: crate::shared::Shared::fail
    pub fn stop(&self) {
        self.tell(|| Order::Stop);
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            let _ = thread.join();
        }
    }
}
