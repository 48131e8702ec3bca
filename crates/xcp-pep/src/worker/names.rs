//! Names into addresses, by the system's resolver, which blocks: so on threads of their own.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, Weak};

use super::{Handle, Order};
use crate::listen::Reached;

/// Looked up at a time. A thread is cheap, and a name whose servers are silent keeps one for as
/// long as the resolver's patience lasts.
pub const THREADS: usize = 16;
/// Waiting at the most.
const QUEUE: usize = 1024;

struct Question {
    name: String,
    port: u16,
    token: u64,
    answer: Handle,
    /// Gone when nobody waits for the answer any more.
    asker: Weak<()>,
}

/// Resolves host names in a thread of its own.
#[derive(Debug, Clone, Default)]
pub struct Asker(Option<SyncSender<Question>>);

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

impl Asker {
    /// With threads, which end with the last asker.
    ///
    /// # Errors
    /// No threads.
    pub fn start() -> std::io::Result<Self> {
        Self::start_with(|name, port| (name, port).to_socket_addrs().ok()?.next())
    }

    /// The same with another resolver than the system's.
    ///
    /// # Errors
    /// No threads.
    pub fn start_with(
        resolve: impl Fn(&str, u16) -> Option<SocketAddr> + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let (sender, questions) = sync_channel(QUEUE);
        let work = Arc::new((Mutex::new(questions), resolve));
        for number in 0..THREADS {
            let work = work.clone();
            std::thread::Builder::new()
                .name(format!("names {number}"))
                .spawn(move || answer(&work.0, &work.1))?;
        }
        Ok(Self(Some(sender)))
    }

    /// Asks; the answer comes as an order, if the asker is still there when it is its turn.
    pub(super) fn ask(
        &self,
        name: String,
        port: u16,
        token: u64,
        answer: &Handle,
        asker: &Arc<()>,
    ) {
        let (answer, asker) = (answer.clone(), Arc::downgrade(asker));
        let question = Question { name, port, token, answer, asker };
        let refused = match &self.0 {
            None => Some(question),
            Some(sender) => sender.try_send(question).err().map(|e| match e {
                std::sync::mpsc::TrySendError::Full(question)
                | std::sync::mpsc::TrySendError::Disconnected(question) => question,
            }),
        };
        if let Some(question) = refused {
            question.answer.tell(Order::Found(question.token, Err(Reached::NoName)));
        }
    }
}

fn answer(
    questions: &Mutex<Receiver<Question>>,
    resolve: &impl Fn(&str, u16) -> Option<SocketAddr>,
) {
    loop {
        let next = questions.lock().unwrap_or_else(std::sync::PoisonError::into_inner).recv();
        let Ok(Question { name, port, token, answer, asker }) = next else { return };
        if asker.strong_count() > 0 {
            answer.tell(Order::Found(token, resolve(&name, port).ok_or(Reached::NoName)));
        }
    }
}
