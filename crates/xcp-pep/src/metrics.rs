//! Counters and histograms, and how Prometheus reads them (its text format 0.0.4). Aggregates only:
//! nothing here has a label per connection.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Counts one more.
    pub fn one(&self) {
        self.add(1);
    }

    /// Counts `n` more.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The count so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How values are distributed: counts below powers of four of a unit.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; Self::BUCKETS],
    sum: AtomicU64,
}

impl Histogram {
    const BUCKETS: usize = 16;

    /// Notes a value, in units.
    pub fn note(&self, value: u64) {
        let bits = (64 - value.leading_zeros()) as usize;
        let bucket = bits.div_ceil(2).min(Self::BUCKETS - 1);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// `unit`: what one is in the unit of the metric's name.
    fn write(&self, out: &mut String, name: &str, help: &str, unit: f64) {
        let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} histogram\n");
        let mut count = 0;
        for (at, bucket) in self.buckets.iter().enumerate() {
            count += bucket.load(Ordering::Relaxed);
            if at + 1 < Self::BUCKETS {
                // All values whose bits fit: below 4^at.
                let bound = (4f64.powi(at as i32) - 1.0) * unit;
                let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {count}");
            }
        }
        let sum = self.sum.load(Ordering::Relaxed) as f64 * unit;
        let _ = write!(
            out,
            "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}\n"
        );
    }
}

/// All counters and histograms of a proxy.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Connections accepted so far.
    pub accepted: Counter,
    /// Connections carried to their end.
    pub finished: Counter,
    /// Connections that one side reset, or that broke.
    pub reset: Counter,
    /// Connections whose server could not be reached.
    pub unreached: Counter,
    /// Connection attempts held back until the server has answered.
    pub held: Counter,
    /// Of these: the server has answered, so the client was.
    pub confirmed: Counter,
    /// Of these: the server has refused, so the client was reset.
    pub refused: Counter,
    /// Of these: the server cannot be reached, and the client was told so by ICMP.
    pub unreachable: Counter,
    /// Of these: nobody has answered, so the client was not.
    pub silent: Counter,
    /// Of these: given up for want of room, because the client gave up, or because the proxy takes
    /// no more.
    pub given_up: Counter,
    /// Clients whose request could not be understood.
    pub garbage: Counter,
    /// Clients of the explicit listener that may not ask.
    pub strangers: Counter,
    /// Targets that the explicit listener may not reach.
    pub forbidden: Counter,
    /// Connections refused because there were too many.
    pub full: Counter,
    /// Connections refused because they came from ourselves.
    pub loops: Counter,
    /// Connections whose first bytes were sent with the SYN.
    pub early: Counter,
    /// Connections that went through the trunk.
    pub trunk_used: Counter,
    /// Connections for which it had none left.
    pub trunk_missed: Counter,
    /// Connections of the other gateway's clients that came by it.
    pub trunk_carried: Counter,
    /// Failed connection attempts of the trunk.
    pub trunk_failed: Counter,
    /// Connections whose client's port could not be kept.
    pub port_changed: Counter,
    /// Peers across the long link that were probed after a timeout.
    pub probes: Counter,
    /// Times that accepting stopped for want of descriptors.
    pub exhausted: Counter,
    /// Bytes from clients to servers.
    pub to_server: Counter,
    /// Bytes from servers to clients.
    pub to_client: Counter,
    /// Time to reach a server, µs.
    pub connect_us: Histogram,
    /// Age of a connection at its end, ms.
    pub age_ms: Histogram,
    /// Bytes of a connection at its end, in both directions.
    pub bytes: Histogram,
}

impl Metrics {
    /// As Prometheus reads them; `active`: connections now; `more`: lines of others.
    #[must_use]
    pub fn text(&self, active: usize, more: &str) -> String {
        let mut out = String::new();
        let mut counter = |name: &str, help: &str, counter: &Counter| {
            let _ = write!(
                out,
                "# HELP {name} {help}\n# TYPE {name} counter\n{name} {}\n",
                counter.get()
            );
        };
        counter("xcpnet_pep_accepted_total", "Connections accepted.", &self.accepted);
        counter("xcpnet_pep_finished_total", "Connections carried to their end.", &self.finished);
        counter(
            "xcpnet_pep_reset_total",
            "Connections that one side reset, or that broke.",
            &self.reset,
        );
        counter(
            "xcpnet_pep_unreached_total",
            "Connections whose server could not be reached.",
            &self.unreached,
        );
        counter(
            "xcpnet_pep_held_total",
            "Connection attempts held back until the server has answered.",
            &self.held,
        );
        counter(
            "xcpnet_pep_confirmed_total",
            "Held attempts whose server has answered.",
            &self.confirmed,
        );
        counter(
            "xcpnet_pep_refused_total",
            "Held attempts whose server has refused.",
            &self.refused,
        );
        counter(
            "xcpnet_pep_unreachable_total",
            "Held attempts whose client was told that the server cannot be reached.",
            &self.unreachable,
        );
        counter("xcpnet_pep_silent_total", "Held attempts whose server was silent.", &self.silent);
        counter(
            "xcpnet_pep_given_up_total",
            "Held attempts given up for lack of room, or by their client.",
            &self.given_up,
        );
        counter(
            "xcpnet_pep_garbage_total",
            "Clients whose request could not be understood.",
            &self.garbage,
        );
        counter(
            "xcpnet_pep_strangers_total",
            "Clients of --listen that are not allowed to ask (--allow).",
            &self.strangers,
        );
        counter(
            "xcpnet_pep_forbidden_total",
            "Requested targets that belong to this machine.",
            &self.forbidden,
        );
        counter(
            "xcpnet_pep_full_total",
            "Connections refused because there were too many (--connections).",
            &self.full,
        );
        counter(
            "xcpnet_pep_loops_total",
            "Connections refused because they came from the proxy itself, or were for it.",
            &self.loops,
        );
        counter(
            "xcpnet_pep_early_total",
            "Connections whose first bytes were sent with the SYN.",
            &self.early,
        );
        counter(
            "xcpnet_pep_trunk_used_total",
            "Connections that went through the trunk.",
            &self.trunk_used,
        );
        counter(
            "xcpnet_pep_trunk_missed_total",
            "Connections for which the trunk had no connection left.",
            &self.trunk_missed,
        );
        counter(
            "xcpnet_pep_trunk_carried_total",
            "Connections of the other gateway's clients that arrived through the trunk.",
            &self.trunk_carried,
        );
        counter(
            "xcpnet_pep_trunk_failed_total",
            "Failed connection attempts of the trunk.",
            &self.trunk_failed,
        );
        counter(
            "xcpnet_pep_probes_total",
            "Peers across the long link that were probed after a timeout.",
            &self.probes,
        );
        counter(
            "xcpnet_pep_port_changed_total",
            "Connections whose client's port could not be kept.",
            &self.port_changed,
        );
        counter(
            "xcpnet_pep_exhausted_total",
            "Times that accepting stopped for lack of descriptors.",
            &self.exhausted,
        );
        counter(
            "xcpnet_pep_bytes_to_server_total",
            "Bytes from clients to servers.",
            &self.to_server,
        );
        counter(
            "xcpnet_pep_bytes_to_client_total",
            "Bytes from servers to clients.",
            &self.to_client,
        );
        let _ = write!(
            out,
            "# HELP xcpnet_pep_connections Current connections.\n# TYPE xcpnet_pep_connections \
             gauge\nxcpnet_pep_connections {active}\n"
        );
        self.connect_us.write(
            &mut out,
            "xcpnet_pep_connect_seconds",
            "Time to reach a server.",
            1e-6,
        );
        self.age_ms.write(
            &mut out,
            "xcpnet_pep_connection_age_seconds",
            "Age of a connection at its end.",
            1e-3,
        );
        self.bytes.write(
            &mut out,
            "xcpnet_pep_connection_bytes",
            "Bytes of a connection at its end, in both directions.",
            1.0,
        );
        out.push_str(more);
        out
    }

    /// A connection has ended.
    pub fn ended(&self, age: Duration, bytes: [u64; 2]) {
        self.age_ms.note(u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        self.bytes.note(bytes[0].saturating_add(bytes[1]));
    }
}
