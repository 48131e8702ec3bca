//! A link's queue and router in the fluid model: sums over an interval, factors for the next,
//! pools. Time and what crosses are given by the others.

use crate::network::{Interval, Link, Others, Router};

use super::{Queue, kept};

/// The first control interval, before anything is known, seconds (as ns-2).
const FIRST_INTERVAL: f64 = 0.05;
/// Least stretch over which the persistent queue is taken, seconds.
const LEAST_QUEUE_TIME: f64 = 0.002;

/// The state of one link.
pub(super) struct RouterState {
    law: Option<Router>,
    link: Link,
    /// Bytes/s at which the queue is emptied.
    drain: f64,
    queue: f64,
    /// Bytes that arrive in this step: of XCP flows.
    arriving: f64,
    /// The share of what arrived in the last step that found the queue full.
    lost: f64,
    input: f64,
    sum_x: f64,
    sum_xrtt: f64,
    max_rtt: f64,
    interval: f64,
    interval_began: f64,
    least: f64,
    least_began: f64,
    persistent: f64,
    /// Cp and Cn: bytes/s per second of X, bytes/s per byte.
    positive: f64,
    negative: f64,
    pool_positive: f64,
    pool_negative: f64,
}

impl RouterState {
    /// Bytes of XCP flows reach the queue; `x` is the RTT that their headers give over the window
    /// (seconds per byte).
    pub fn arrive(&mut self, bytes: f64, x: f64, rtt: f64) {
        self.arriving += bytes;
        self.input += bytes;
        let rtt = self.law.map_or(rtt, |law| rtt.min(law.longest));
        self.sum_x += bytes * x;
        self.sum_xrtt += bytes * x * rtt;
        self.max_rtt = self.max_rtt.max(rtt);
    }

    /// What departing bytes are granted beside `others`, what routers before granted: bytes/s per
    /// byte. Draft, lines 20 to 31.
    pub fn grant(&mut self, bytes: f64, x: f64, rtt: f64, others: f64) -> f64 {
        let Some(law) = self.law else { return others };
        let gain = law.gain.factor(self.interval, rtt);
        let mut positive = self.positive * x * gain;
        let mut negative = self.negative * gain;
        let own = positive - negative;
        let given = own.min(others);
        if law.pools {
            if others < own {
                negative = (negative + (own - others)).min(self.pool_negative / bytes);
                positive = (others + negative).max(0.0);
            }
            self.pool_positive = (self.pool_positive - positive * bytes).max(0.0);
            self.pool_negative = (self.pool_negative - negative * bytes).max(0.0);
            if self.pool_positive <= 0.0 {
                self.positive = 0.0;
            }
            if self.pool_negative <= 0.0 {
                self.negative = 0.0;
            }
        }
        given
    }

    /// End of an interval. Draft, lines 7 to 18.
    fn compute(&mut self, law: Router, elapsed: f64, datagrams: f64) {
        let d = match law.interval {
            _ if self.sum_x <= 0.0 => FIRST_INTERVAL,
            Interval::Mean => self.sum_xrtt / self.sum_x,
            Interval::Max => self.max_rtt,
        };
        let y = self.input / elapsed;
        let capacity =
            law.capacity / 8.0 - if law.others == Others::Subtracted { datagrams } else { 0.0 };
        let spare = law.alpha * (capacity - y) - law.beta * (self.persistent - law.target) / d;
        let shuffled = (law.gamma * y - spare.abs()).max(0.0);
        self.pool_positive = shuffled + spare.max(0.0);
        self.pool_negative = shuffled + (-spare).max(0.0);
        self.positive = if self.sum_x > 0.0 { self.pool_positive / self.sum_x } else { 0.0 };
        self.negative = if self.input > 0.0 { self.pool_negative / self.input } else { 0.0 };
        self.interval = d;
        (self.input, self.sum_x, self.sum_xrtt, self.max_rtt) = (0.0, 0.0, 0.0, 0.0);
    }
}

impl Queue for RouterState {
    fn new(link: &Link, _place: usize, _dt: f64) -> Self {
        Self {
            law: link.router,
            drain: link.drain() / 8.0,
            link: link.clone(),
            queue: 0.0,
            arriving: 0.0,
            lost: 0.0,
            input: 0.0,
            sum_x: 0.0,
            sum_xrtt: 0.0,
            max_rtt: 0.0,
            interval: FIRST_INTERVAL,
            interval_began: 0.0,
            least: 0.0,
            least_began: 0.0,
            persistent: 0.0,
            positive: 0.0,
            negative: 0.0,
            pool_positive: 0.0,
            pool_negative: 0.0,
        }
    }

    fn change(&mut self, law: Option<Router>) {
        self.law = law;
    }

    fn wait(&self) -> f64 {
        self.queue / self.drain
    }

    fn queue(&self) -> f64 {
        self.queue
    }

    fn lost(&self) -> f64 {
        self.lost
    }

    fn advance(&mut self, now: f64, dt: f64, datagrams: f64) -> f64 {
        self.link.datagrams = datagrams * 8.0;
        self.drain = self.link.drain() / 8.0;
        let apart = self.link.router.is_some_and(|router| router.own_queue.is_some());
        let among = if apart { 0.0 } else { datagrams };
        let arriving = std::mem::take(&mut self.arriving) + among * dt;
        let flows = (self.queue + arriving).min(self.drain * dt);
        (self.queue, self.lost) = kept(self.queue + arriving - flows, arriving, self.link.limit);
        let sent = flows + ((datagrams - among) * dt).min(self.link.rate / 8.0 * dt - flows);
        let Some(law) = self.law else { return sent };
        if law.others == Others::Input {
            self.input += datagrams * dt;
        }
        self.least = self.least.min(self.queue);
        if now - self.least_began >= LEAST_QUEUE_TIME.max((self.interval - self.wait()) / 2.0) {
            self.persistent = self.least;
            self.least = self.queue;
            self.least_began = now;
        }
        if now - self.interval_began >= self.interval.max(law.shortest) {
            self.compute(law, now - self.interval_began, datagrams);
            self.interval_began = now;
        }
        sent
    }
}
