//! A link's queue and its router with a calendar in the fluid model: engine/robust.h in floating
//! point, whose steps and names are the same.
//!
//! Where this differs from it:
//! 1. The calendar has one slot for each step of time. The law's are d/64 to d/32 long.
//! 2. What counts packets (the shortest part, the noise gate) takes all for 1500 bytes long.
//! 3. TCP is not steered, since there is none, and the capacity is given, not measured.

use std::collections::VecDeque;

use crate::calendar::{MEASURED, PACKET, part};
use crate::network::{Link, Others, Router};

use super::{Queue, kept};

/// The first part, before anything is known, seconds (XCP_FIRST_INTERVAL_NS).
const FIRST: f64 = 0.05;
/// Parts that are remembered (XCP_ROBUST_PAST).
const PAST: usize = 16;
/// Of the capacity, what flows limited elsewhere may be offered in d (XCP_HEADROOM).
const HEADROOM: f64 = 0.1;
/// What a pool holds above plan, where it guards a sum rather than makes it.
const SLACK: f64 = 1.25;

/// Sums over a part, or several: seconds, bytes, and X in seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    elapsed: f64,
    all: f64,
    xcp: f64,
    here: f64,
    x: f64,
    x_here: f64,
    x_unknown: f64,
    x_asking: f64,
    x_rtt: f64,
}

impl Sums {
    fn plus(&mut self, other: &Sums) {
        self.elapsed += other.elapsed;
        self.all += other.all;
        self.xcp += other.xcp;
        self.here += other.here;
        self.x += other.x;
        self.x_here += other.x_here;
        self.x_unknown += other.x_unknown;
        self.x_asking += other.x_asking;
        self.x_rtt += other.x_rtt;
    }
}

/// What reaches or leaves a router in one step, of one class.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passing {
    /// Of all its flows.
    pub bytes: f64,
    /// What headers say: RTT over window (seconds per byte), and RTT.
    pub x: f64,
    pub rtt: f64,
    /// Increase that is asked for, or what routers before left of it: bytes/s per byte.
    pub asked: f64,
    /// The link that limits the flow, if it knows one.
    pub limited_by: Option<usize>,
}

/// What the last part's end decided. Factors of X in bytes/s per second, of sizes in bytes/s per
/// byte; pools in bytes/s.
#[derive(Debug, Clone, Copy, Default)]
struct Factors {
    cp: f64,
    cn: f64,
    fp: f64,
    hp: f64,
    hn: f64,
    gp: f64,
    gn: f64,
    cap: f64,
    pool_fp: f64,
    pool_n: f64,
    pool_hp: f64,
    pool_hn: f64,
}

/// The state of one link.
pub(super) struct CalendarState {
    law: Option<Router>,
    /// Its place in the route's links, by which flows name it.
    place: usize,
    /// Bytes/s.
    rate: f64,
    limit: f64,
    queue: f64,
    /// Bytes that arrive in this step, and all that were ever sent.
    arriving: f64,
    sent: f64,
    /// The share of what arrived in the last step that found the queue full.
    lost: f64,
    dt: f64,
    step: usize,
    /// When the running part began, and how long it lasts.
    began: f64,
    interval: f64,
    /// Between two packets of a flow, at the last end of a part.
    gap: f64,
    d: f64,
    rtt_known: bool,
    now: Sums,
    past: VecDeque<Sums>,
    least: f64,
    last_least: f64,
    factors: Factors,
    /// What is due: by step, from `first` on, bytes/s.
    due: VecDeque<f64>,
    first: usize,
}

/// Takes at most what the pool has.
fn take(wanted: f64, pool: &mut f64) -> f64 {
    let taken = wanted.min(*pool).max(0.0);
    *pool -= taken;
    taken
}

fn over(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

impl CalendarState {
    /// Bytes of flows reach the queue. Returns what it will have sent when it is their turn.
    pub fn arrive(&mut self, now: f64, of: &Passing) -> f64 {
        self.tick(now);
        let turn = self.sent + self.queue + self.arriving;
        self.arriving += of.bytes;
        if let Some(law) = self.law {
            self.count(&law, now, of);
        }
        turn
    }

    /// What has been sent by the end of this step, if there is that much.
    pub fn sent_by(&self, dt: f64) -> f64 {
        self.sent + self.rate * dt
    }

    fn count(&mut self, law: &Router, now: f64, of: &Passing) {
        let rtt = of.rtt.min(law.longest);
        let x = of.bytes * of.x;
        self.now.all += of.bytes;
        self.now.xcp += of.bytes;
        self.now.x += x;
        self.now.x_rtt += x * rtt;
        match of.limited_by {
            Some(link) if link == self.place => {
                self.now.x_here += x;
                self.now.here += of.bytes;
            }
            None => self.now.x_unknown += x,
            Some(_) => return,
        }
        if of.asked > 0.0 {
            self.now.x_asking += x;
        }
        if !self.rtt_known {
            self.interval = self.interval.min(now - self.began + rtt);
        }
    }

    /// What departing bytes are granted, bytes/s per byte, and whether that is less than was asked
    /// for. It is booked.
    pub fn grant(&mut self, of: &Passing) -> (f64, bool) {
        let Some(law) = self.law else { return (of.asked, false) };
        let f = &mut self.factors;
        let (x, bytes) = (of.bytes * of.x, of.bytes);
        let here = of.limited_by == Some(self.place);
        let open = here || of.limited_by.is_none();
        let taken = take(f.cn * bytes, &mut f.pool_n);
        let mut offered = 0.0;
        let share = if open {
            offered = (f.fp * x).min(f.pool_fp).max(0.0);
            let shuffled = if here {
                take(f.hp * x, &mut f.pool_hp) - take(f.hn * bytes, &mut f.pool_hn)
            } else {
                0.0
            };
            offered + shuffled
        } else {
            let gain = (f.gp * x - f.gn * bytes).max(0.0).min(f.cap * x);
            (f.cp * x).max(gain)
        };
        let asked = of.asked * bytes;
        let lowered = share - taken < asked;
        let given = if lowered { share - taken } else { asked };
        f.pool_fp -= (given + taken).clamp(0.0, offered);
        if open || given < 0.0 {
            self.book(of.rtt.min(law.longest), given, law.capacity / 8.0);
        }
        (given / bytes, lowered)
    }

    fn book(&mut self, rtt: f64, rate: f64, most: f64) {
        let slot = self.step + (rtt / self.dt).round() as usize - self.first;
        if self.due.len() <= slot {
            self.due.resize(slot + 1, 0.0);
        }
        self.due[slot] += rate.clamp(-most, most);
    }

    fn tick(&mut self, now: f64) {
        if now - self.began >= self.interval - 0.5 * self.dt
            && let Some(law) = self.law
        {
            self.close(law, now);
        }
    }

    /// The end of a part.
    fn close(&mut self, law: Router, now: f64) {
        let c = law.capacity / 8.0;
        let elapsed = (now - self.began).max(self.dt);
        let silence = elapsed / 2.0 > self.interval.max(self.d);
        self.now.elapsed = elapsed;
        if silence {
            self.past.clear();
        }
        self.past.push_front(std::mem::take(&mut self.now));
        self.past.truncate(PAST);
        let mut window = Sums::default();
        for (i, sums) in self.past.iter().enumerate() {
            if i == 0 || window.elapsed < self.d * 0.999 {
                window.plus(sums);
            }
        }
        let mut measured = Sums::default();
        self.past.iter().take(MEASURED as usize).for_each(|sums| measured.plus(sums));
        if window.x > 0.0 {
            self.d = (window.x_rtt / window.x).clamp(law.shortest, law.longest);
            self.rtt_known = true;
        }
        let gap = over(window.x * PACKET, window.xcp);
        self.interval = part(self.d, c, gap.min(self.gap));
        self.gap = gap;
        let falls = self.least < self.last_least * 0.98;
        let two = self.past.len() > 1;
        let queue = if two { self.least.min(self.last_least) } else { self.least };
        (self.last_least, self.least) = (self.least, self.queue);
        let f = self.spare(&law, &measured, queue, silence, falls);
        self.divide(&law, &window, f, silence);
        self.began = now;
    }

    /// F: the law's differences 2 to 4.
    fn spare(&mut self, law: &Router, m: &Sums, queue: f64, silence: bool, falls: bool) -> f64 {
        let c = law.capacity / 8.0;
        let (y, xcp) = (m.all / m.elapsed, m.xcp / m.elapsed);
        // What was due during M shows for the part of it that came after; before M it is past.
        let steps = (m.elapsed / self.dt).round().max(1.0) as usize;
        while self.first + steps < self.step && !self.due.is_empty() {
            self.due.pop_front();
            self.first += 1;
        }
        if self.due.is_empty() {
            self.first = self.step;
        }
        let began = self.step as f64 - steps as f64;
        let seen = self.step.saturating_sub(self.first).min(self.due.len());
        let mut owed: f64 =
            (0..seen).map(|i| self.due[i] * ((self.first + i) as f64 - began) / steps as f64).sum();
        let (mut then, mut left) = (y + owed, queue);
        let horizon = (self.d / self.dt).round() as usize;
        for i in 0..horizon.max(self.due.len() - seen) {
            let due = self.due.get(seen + i).copied().unwrap_or(0.0);
            owed += due;
            then += due;
            if i < horizon {
                left = (left + (then.max(y - xcp) - c) * self.dt).max(0.0);
            }
        }
        let gap = c - y - owed - (left - law.target) / self.d;
        let sure = if silence {
            1.0
        } else {
            let packets = (c * m.elapsed / PACKET).max(1.0);
            law.alpha * (gap.abs() * packets.sqrt() / c).min(1.0)
        };
        let mut f = sure * gap;
        if !falls && self.queue > c * self.d / 4.0 {
            f = f.min(0.0);
        }
        f.max(-(xcp + owed).max(0.0))
    }

    /// Who gets what of F in the next part.
    fn divide(&mut self, law: &Router, w: &Sums, f: f64, silence: bool) {
        let c = law.capacity / 8.0;
        let scale = self.interval / w.elapsed;
        // What one flow's X sums up to in the next part.
        let least = self.interval;
        let x = w.x * scale;
        // Difference 9 of robust.h: as many as come, but no more than can leave.
        let heard = (w.xcp * scale).min(over(c * self.interval * w.xcp, w.all));
        let open = if w.x_here > 0.0 { (w.x_here + w.x_unknown) * scale } else { x }.max(least);
        let asking = (w.x_asking * scale).max(least);
        let turnover = law.gamma * w.here / w.elapsed * (self.interval / self.d).min(1.0);
        let shuffle = (turnover - f.abs()).max(0.0);
        let here = w.x_here > 0.0 && w.here > 0.0;
        let elsewhere = ((w.x - w.x_here) / w.elapsed).max(1.0) * self.d;
        self.factors = Factors {
            cp: over(f.max(0.0), if silence { x.max(least) } else { x }),
            cn: over((-f).max(0.0), heard),
            fp: f.max(0.0) / asking.min(open),
            hp: if here { shuffle / (w.x_here * scale) } else { 0.0 },
            hn: if here { shuffle / (w.here * scale) } else { 0.0 },
            gp: if here { law.gamma / self.d * w.here / w.x_here } else { 0.0 },
            gn: if here { law.gamma / self.d } else { 0.0 },
            cap: if here { HEADROOM * c / elsewhere } else { 0.0 },
            pool_fp: f.max(0.0),
            pool_n: SLACK * (-f).max(0.0),
            pool_hp: if here { SLACK * shuffle } else { 0.0 },
            pool_hn: if here { SLACK * shuffle } else { 0.0 },
        };
    }
}

impl Queue for CalendarState {
    fn new(link: &Link, place: usize, dt: f64) -> Self {
        Self {
            law: link.router,
            place,
            rate: link.rate / 8.0,
            limit: link.limit,
            queue: 0.0,
            arriving: 0.0,
            sent: 0.0,
            lost: 0.0,
            dt,
            step: 0,
            began: 0.0,
            interval: FIRST,
            gap: 0.0,
            d: FIRST,
            rtt_known: false,
            now: Sums::default(),
            past: VecDeque::new(),
            least: 0.0,
            last_least: 0.0,
            factors: Factors::default(),
            due: VecDeque::new(),
            first: 0,
        }
    }

    fn change(&mut self, law: Option<Router>) {
        self.law = law;
    }

    fn wait(&self) -> f64 {
        self.queue / self.rate
    }

    fn queue(&self) -> f64 {
        self.queue
    }

    fn lost(&self) -> f64 {
        self.lost
    }

    fn advance(&mut self, now: f64, dt: f64, datagrams: f64) -> f64 {
        if datagrams > 0.0 {
            self.tick(now);
            if self.law.is_some_and(|law| law.others == Others::Input) {
                self.now.all += datagrams * dt;
            }
        }
        let arriving = std::mem::take(&mut self.arriving) + datagrams * dt;
        let sent = (self.queue + arriving).min(self.rate * dt);
        (self.queue, self.lost) = kept(self.queue + arriving - sent, arriving, self.limit);
        self.least = self.least.min(self.queue);
        self.step += 1;
        self.sent += sent;
        sent
    }
}
