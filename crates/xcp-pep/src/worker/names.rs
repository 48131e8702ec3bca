//! Names into addresses, by the system's resolver, which blocks: so on threads of their own.

use std::net::ToSocketAddrs as _;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use super::{Handle, Order};
use crate::listen::Reached;

/// Looked up at a time.
const THREADS: usize = 4;
/// Waiting at the most.
const QUEUE: usize = 1024;

struct Question {
    name: String,
    port: u16,
    token: u64,
    answer: Handle,
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
        let (sender, questions) = sync_channel(QUEUE);
        let questions = Arc::new(Mutex::new(questions));
        for number in 0..THREADS {
            let questions = questions.clone();
            std::thread::Builder::new()
                .name(format!("names {number}"))
                .spawn(move || answer(&questions))?;
        }
        Ok(Self(Some(sender)))
    }

    /// Asks; the answer comes as an order.
    pub(super) fn ask(&self, name: String, port: u16, token: u64, answer: &Handle) {
        let question = Question { name, port, token, answer: answer.clone() };
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

fn answer(questions: &Mutex<Receiver<Question>>) {
    loop {
        let next = questions.lock().unwrap_or_else(std::sync::PoisonError::into_inner).recv();
        let Ok(Question { name, port, token, answer }) = next else { return };
        let found = (name.as_str(), port).to_socket_addrs().ok().and_then(|mut all| all.next());
        answer.tell(Order::Found(token, found.ok_or(Reached::NoName)));
    }
}
