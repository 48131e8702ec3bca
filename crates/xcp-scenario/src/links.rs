//! Reads `[[link]]`: both directions of every link, queues still with the limits as written (`2bdp`
//! needs the flows, see [`Draft::resolve`]). What happens to packets on the way is `hazards.rs`'s.

use std::collections::HashMap;

use crate::error::Span;
use crate::fields::{Faults, Fields};
use crate::hazards;
use crate::law;
use crate::set::name_of;
use crate::spec::{DELAY_CHANGES, LAW, LAW_CHANGE, LINK, POLICE, QUEUE, RATE_CHANGES, REVERSE};
use xcp_law::quantity::{Amount, Standing};
use xcp_law::text::plural;
use xcp_law::{ConfigError, RouterConfig};
use xcp_model::Input;
use xcp_model::Law;
use xcp_model::units::{NANOS_PER_SEC, Nanos, Period};
use xcp_model::{
    Control, Direction, Discipline, LawChange, Limit, Link, Loss, MediumId, NodeId, Others, Police,
    Queue, Red, Reorder, Router,
};

/// Packets a queue holds if nobody says: Linux's `txqueuelen`.
pub const DEFAULT_LIMIT_PACKETS: u64 = 1000;
/// Size of packets where no flow says.
pub(crate) const DEFAULT_PACKET_BYTES: u32 = 1500;

/// The names of nodes in order of appearance.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    pub names: Vec<String>,
    index: HashMap<String, NodeId>,
    /// Whether all links could be read.
    pub complete: bool,
}

impl Nodes {
    fn intern(&mut self, name: &str) -> NodeId {
        if let Some(id) = self.index.get(name) {
            return *id;
        }
        self.names.push(name.into());
        self.index.insert(name.into(), self.names.len() - 1);
        self.names.len() - 1
    }

    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.index.get(name).copied()
    }
}

/// A link before its limits are known.
#[derive(Debug)]
pub(crate) struct Draft {
    pub name: String,
    pub span: Span,
    pub ends: [NodeId; 2],
    pub directions: [DirectionDraft; 2],
    pub medium: Option<MediumId>,
}

/// One direction of it.
#[derive(Debug, Clone)]
pub(crate) struct DirectionDraft {
    pub rate_bps: u64,
    rate_changes: Vec<(Nanos, u64)>,
    pub delay: Nanos,
    delay_changes: Vec<(Nanos, Nanos)>,
    framing_bytes: u32,
    pub queue: QueueDraft,
    losses: Vec<Loss>,
    blackouts: Vec<Period>,
    reorder: Option<Reorder>,
}

/// A queue as written.
#[derive(Debug, Clone)]
pub(crate) struct QueueDraft {
    pub limit: Amount,
    /// Where the limit stands, or what stands for it.
    pub limit_span: Span,
    kind: KindDraft,
    /// Where that it yields is written.
    yields: Option<Span>,
}

impl QueueDraft {
    /// Whether its router wants to know which link limits a flow, at some time of the run.
    pub fn wants_ids(&self) -> bool {
        match &self.kind {
            KindDraft::Xcp { law, changes, .. } => {
                law.law.config.wants_ids()
                    || changes.iter().any(|(_, law)| law.law.config.wants_ids())
            }
            KindDraft::DropTail | KindDraft::Red { .. } => false,
        }
    }
}

#[derive(Debug, Clone)]
enum KindDraft {
    DropTail,
    Red {
        min: Option<(Amount, Span)>,
        max: Option<(Amount, Span)>,
        probability: f64,
        weight: Option<f64>,
        gentle: bool,
    },
    Xcp {
        law: LawDraft,
        changes: Vec<(Nanos, LawDraft)>,
        others: Others,
        police: Option<Police>,
    },
}

/// A law whose queue target depends on the flows.
#[derive(Debug, Clone)]
struct LawDraft {
    law: Law,
    target: Option<(Standing, Span)>,
}

/// What resolving a limit needs to know of the flows that cross a direction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Crossing {
    /// Largest base RTT of the flows whose data or acknowledgements cross; `None` if there are
    /// none.
    pub rtt: Option<Nanos>,
    /// Largest packet of the flows whose data cross.
    pub packet_bytes: Option<u32>,
}

/// Reads all links of the file. `duration` bounds losses that do not end.
pub(crate) fn read(
    file: &Fields<'_>,
    nodes: &mut Nodes,
    media: &mut Media,
    duration: Nanos,
) -> Vec<Draft> {
    let mut names: HashMap<String, ()> = HashMap::new();
    let mut pairs: HashMap<[NodeId; 2], String> = HashMap::new();
    let mut drafts = Vec::new();
    for fields in file.tables("link", &LINK) {
        let Some(draft) = read_one(&fields, nodes, media, duration) else { continue };
        let mut pair = draft.ends;
        pair.sort_unstable();
        let named = fields.item("name").is_some();
        if let (Some(other), false) = (pairs.get(&pair), named) {
            let [a, b] = draft.ends.map(|n| nodes.names[n].as_str());
            let what = format!("`{a}` and `{b}` are already joined by the link `{other}`");
            fields.faults.add(
                fields.span_of("between"),
                what,
                "a link includes both directions; a second link between the same nodes needs a \
                 `name` of its own",
            );
        } else if names.insert(draft.name.clone(), ()).is_some() {
            let what = format!("two links are named `{}`", draft.name);
            fields.faults.add(fields.span_of("name"), what, "give each link a different name");
        }
        pairs.entry(pair).or_insert_with(|| draft.name.clone());
        if LINK.key(&draft.name).is_some() {
            reserved(&fields, &draft.name);
        }
        drafts.push(draft);
    }
    drafts
}

/// A name that is also a key would make `link.NAME` ambiguous.
pub(crate) fn reserved(fields: &Fields<'_>, name: &str) {
    fields.faults.add(
        fields.span_of("name"),
        format!("`{name}` is the name of a key and cannot name anything else"),
        "choose another name",
    );
}

fn read_one(
    fields: &Fields<'_>,
    nodes: &mut Nodes,
    media: &mut Media,
    duration: Nanos,
) -> Option<Draft> {
    fields.require("between");
    fields.require("rate");
    fields.require("delay");
    let given = fields.name("name");
    let forward = DirectionDraft {
        rate_bps: fields.rate("rate").unwrap_or(1),
        rate_changes: read_rate_changes(fields),
        delay: fields.time("delay").unwrap_or(0),
        delay_changes: fields.time_steps(DELAY_CHANGES).unwrap_or_default(),
        framing_bytes: fields.size("framing").map_or(0, |n| n as u32),
        queue: read_queue(fields),
        losses: Vec::new(),
        blackouts: Vec::new(),
        reorder: None,
    };
    let mut directions = [forward.clone(), forward];
    for (loss, sides) in hazards::losses(fields, duration, true) {
        sides.into_iter().for_each(|side| directions[side].losses.push(loss.clone()));
    }
    for (period, sides) in hazards::blackouts(fields, true) {
        sides.into_iter().for_each(|side| directions[side].blackouts.push(period));
    }
    if let Some((reorder, sides)) = hazards::reorder(fields, true) {
        sides.into_iter().for_each(|side| directions[side].reorder = Some(reorder));
    }
    if let Some(reverse) = fields.table("reverse", &REVERSE) {
        override_direction(&reverse, &mut directions[1], duration);
    }
    directions.iter_mut().for_each(|d| d.blackouts.sort_by_key(|p| p.from));
    let between = fields.names("between")?;
    let [(a, _), (b, _)] = between.as_slice() else {
        fields.faults.add(
            fields.span_of("between"),
            format!("`between` names {} nodes", between.len()),
            "a link joins two nodes, like between = [\"S\", \"R\"]",
        );
        return None;
    };
    if a == b {
        fields.faults.add(
            fields.span_of("between"),
            format!("the link joins `{a}` with itself"),
            "name two different nodes",
        );
        return None;
    }
    let name = given.or_else(|| name_of(fields.table, &LINK))?;
    let medium = fields.name("medium").map(|name| media.join(fields, &name, &directions));
    let yields = directions.iter().find_map(|direction| direction.queue.yields);
    if let Some(at) = yields.filter(|_| medium.is_none()) {
        fields.faults.add(
            at,
            format!("a queue of `{name}` yields, but nobody else transmits on that link"),
            "leave out `yields`, or give the link a `medium`",
        );
    }
    Some(Draft {
        name,
        span: fields.span,
        ends: [nodes.intern(a), nodes.intern(b)],
        directions,
        medium,
    })
}

/// The media that links share, in order of appearance, and the rate of each.
#[derive(Debug, Default)]
pub(crate) struct Media {
    pub names: Vec<String>,
    rates: Vec<u64>,
}

impl Media {
    /// A link with these directions is on the medium of this name.
    fn join(
        &mut self,
        fields: &Fields<'_>,
        name: &str,
        directions: &[DirectionDraft; 2],
    ) -> MediumId {
        let [there, back] = directions;
        let medium = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.into());
            self.rates.push(there.rate_bps);
            self.names.len() - 1
        });
        let rate = self.rates[medium];
        if let Some(of) = [there, back].iter().find(|of| !of.rate_changes.is_empty()) {
            fields.faults.add(
                fields.span_of(RATE_CHANGES),
                format!("the rate of the medium `{name}` cannot change from {} bit/s", of.rate_bps),
                "leave out `rate-changes` or `medium`",
            );
        }
        if there.rate_bps != rate || back.rate_bps != rate {
            let other = if there.rate_bps == rate { back.rate_bps } else { there.rate_bps };
            fields.faults.add(
                fields.span_of("medium"),
                format!(
                    "the medium `{name}` cannot have two rates: {rate} bit/s and {other} bit/s"
                ),
                "links of a medium have the same `rate`, in both directions",
            );
        }
        medium
    }
}

fn read_rate_changes(fields: &Fields<'_>) -> Vec<(Nanos, u64)> {
    let changes = fields.rate_steps(RATE_CHANGES).unwrap_or_default();
    if changes.iter().any(|(_, rate)| *rate == 0) {
        fields.faults.add(
            fields.span_of(RATE_CHANGES),
            "a rate of zero",
            "write rates above zero; for a time in which nothing arrives, use `blackout`",
        );
    }
    changes
}

fn override_direction(reverse: &Fields<'_>, direction: &mut DirectionDraft, duration: Nanos) {
    if let Some(rate) = reverse.rate("rate") {
        direction.rate_bps = rate;
        direction.rate_changes.clear();
    }
    if reverse.item(RATE_CHANGES).is_some() {
        direction.rate_changes = read_rate_changes(reverse);
    }
    if let Some(delay) = reverse.time("delay") {
        direction.delay = delay;
        direction.delay_changes.clear();
    }
    direction.delay_changes =
        reverse.time_steps(DELAY_CHANGES).unwrap_or(std::mem::take(&mut direction.delay_changes));
    direction.framing_bytes = reverse.size("framing").map_or(direction.framing_bytes, |n| n as u32);
    if reverse.item("queue").is_some() {
        direction.queue = read_queue(reverse);
    }
    if reverse.item("loss").is_some() {
        direction.losses =
            hazards::losses(reverse, duration, false).into_iter().map(|(loss, _)| loss).collect();
    }
    if reverse.item("blackout").is_some() {
        direction.blackouts =
            hazards::blackouts(reverse, false).into_iter().map(|(period, _)| period).collect();
    }
    if let Some((reorder, _)) = hazards::reorder(reverse, false) {
        direction.reorder = Some(reorder);
    }
}

fn read_queue(link: &Fields<'_>) -> QueueDraft {
    let absent = QueueDraft {
        limit: Amount::Packets(DEFAULT_LIMIT_PACKETS),
        limit_span: link.span,
        kind: KindDraft::DropTail,
        yields: None,
    };
    let Some(queue) = link.table("queue", &QUEUE) else { return absent };
    let kind = queue.choice("kind").unwrap_or("drop-tail");
    let (limit, limit_span) = queue.amount("limit").unwrap_or((absent.limit, queue.span));
    let red = KindDraft::Red {
        min: queue.amount("min"),
        max: queue.amount("max"),
        probability: queue.number("probability").unwrap_or(0.1),
        weight: queue.number("weight"),
        gentle: queue.bool("gentle").unwrap_or(true),
    };
    let share = queue.number("share").unwrap_or(0.5);
    let others = match queue.choice("others") {
        Some("first") => Others::First,
        Some("last") => Others::Last,
        Some("fair") => Others::Fair { share },
        Some("split") => Others::Split { share },
        _ => Others::Shared,
    };
    let law = read_law(&queue, others);
    let changes = read_changes(&queue, others);
    let kind = match kind {
        "red" => red,
        "xcp" => {
            let police = read_police(&queue);
            check_calendar(&queue, &law, &changes, others, police.is_some());
            KindDraft::Xcp { law, changes, others, police }
        }
        _ => KindDraft::DropTail,
    };
    let yields = queue.bool("yields").filter(|yields| *yields).map(|_| queue.span_of("yields"));
    QueueDraft { limit, limit_span, kind, yields }
}

/// What a router that remembers its promises does not go with.
fn check_calendar(
    queue: &Fields<'_>,
    law: &LawDraft,
    changes: &[(Nanos, LawDraft)],
    others: Others,
    policed: bool,
) {
    let remembers = |draft: &LawDraft| draft.law.config.control == Control::Calendar;
    let amiss = [
        ("police", remembers(law) && policed, "a policer"),
        ("others", remembers(law) && others != Others::Shared, "a separate queue for others"),
        (
            "law-changes",
            !changes.is_empty()
                && (remembers(law) || changes.iter().any(|(_, law)| remembers(law))),
            "a change of law",
        ),
    ];
    for (key, _, what) in amiss.iter().filter(|(_, amiss, _)| *amiss) {
        let what = format!("{what} does not go with the law `robust`");
        queue.faults.add(queue.span_of(key), what, "leave it out, or choose another law");
    }
}

/// The `police` of a queue.
fn read_police(queue: &Fields<'_>) -> Option<Police> {
    let police = queue.table("police", &POLICE)?;
    let on = police.bool("on").unwrap_or(true);
    let flows = police.integer("flows").map_or(4096, |n| n as u32);
    let longest_rtt = police.time("longest-rtt").unwrap_or(NANOS_PER_SEC);
    on.then_some(Police { flows, longest_rtt })
}

/// The `law` of a queue or of a change.
fn read_law(fields: &Fields<'_>, others: Others) -> LawDraft {
    let given = fields.table("law", &LAW);
    let target = given.as_ref().and_then(|law| law.standing("target"));
    let says = given.as_ref().is_some_and(|law| law.item("input").is_some());
    let mut law = given.map_or_else(Law::xcp, |given| law::read(&given));
    if others != Others::Shared && !says {
        // What waits in another queue is none of this one's.
        law.config.input = Input::Xcp;
    }
    LawDraft { law, target }
}

fn read_changes(queue: &Fields<'_>, others: Others) -> Vec<(Nanos, LawDraft)> {
    let mut changes: Vec<(Nanos, LawDraft)> = Vec::new();
    for change in queue.tables("law-changes", &LAW_CHANGE) {
        change.require("at");
        change.require("law");
        let Some(at) = change.time("at") else { continue };
        if changes.last().is_some_and(|(before, _)| *before >= at) {
            change.faults.add(
                change.span_of("at"),
                "a change of law is not later than the one before it",
                "list changes in order of time",
            );
        }
        changes.push((at, read_law(&change, others)));
    }
    changes
}

impl Draft {
    /// Turns amounts into packets and bytes now that the flows are known.
    pub fn resolve(self, crossing: [Crossing; 2], faults: &Faults) -> Link {
        let [there, back] = self.directions;
        let round_trip = there.delay + back.delay;
        let directions = [
            there.resolve(crossing[0], round_trip, faults),
            back.resolve(crossing[1], round_trip, faults),
        ];
        Link { name: self.name, ends: self.ends, directions, medium: self.medium }
    }
}

impl DirectionDraft {
    fn resolve(self, crossing: Crossing, round_trip: Nanos, faults: &Faults) -> Direction {
        let rtt = crossing.rtt.unwrap_or(round_trip);
        let packet = crossing.packet_bytes.unwrap_or(DEFAULT_PACKET_BYTES);
        let span = self.queue.limit_span;
        let limit = self.limit(rtt, packet, faults);
        let discipline = match self.queue.kind {
            KindDraft::DropTail => Discipline::DropTail,
            KindDraft::Xcp { law, changes, others, police } => {
                let law_of = |LawDraft { mut law, target }: LawDraft| {
                    law.config.queue_target_bytes = target.map_or(0, |(target, at)| {
                        // A packet counts as the largest of the flows whose data cross.
                        let bytes = target.bytes(self.rate_bps, packet, |times| {
                            bdp(times, self.rate_bps, rtt, at, faults)
                        });
                        let whole = limit_bytes(limit, packet);
                        if bytes > whole {
                            let what = format!(
                                "the queue's target exceeds its limit: {bytes} bytes, where {whole} fit"
                            );
                            faults.add(at, what, "`target` can be at most `limit`");
                        }
                        let whole = RouterConfig {
                            capacity_bytes_per_sec: law.capacity_bps.unwrap_or(self.rate_bps) / 8,
                            queue_target_bytes: bytes,
                            ..law.config.clone()
                        };
                        if let Err(error @ ConfigError::CalendarTarget) = whole.check() {
                            faults.add(at, error.to_string(), error.remedy());
                        }
                        bytes
                    });
                    if let (None, Others::Split { share }) = (law.capacity_bps, others) {
                        law.capacity_bps = Some(((self.rate_bps as f64 * share) as u64).max(1));
                    }
                    law
                };
                let law = law_of(law);
                let changes = changes.into_iter();
                let changes = changes.map(|(at, law)| LawChange { at, law: law_of(law) }).collect();
                Discipline::Xcp(Router { law, changes, others, police })
            }
            KindDraft::Red { min, max, probability, weight, gentle } => {
                let whole = packets(limit, packet);
                let threshold = |amount: Option<(Amount, Span)>, default: f64| match amount {
                    None => default,
                    Some((Amount::Percent(p), _)) => p.to_f64() / 100.0 * whole,
                    Some((Amount::Packets(n), _)) => packets(Limit::Packets(n), packet),
                    Some((Amount::Bytes(n), _)) => packets(Limit::Bytes(n), packet),
                    Some((Amount::Bdp(b), at)) => {
                        packets(Limit::Bytes(bdp(b, self.rate_bps, rtt, at, faults)), packet)
                    }
                };
                let (min_packets, max_packets) =
                    (threshold(min, whole / 3.0), threshold(max, whole * 2.0 / 3.0));
                let at = max.or(min).map_or(span, |(_, at)| at);
                let shown =
                    format!("from {min_packets:.1} to {max_packets:.1} packets, limit {whole:.1}");
                if min_packets >= max_packets {
                    faults.add(
                        at,
                        format!("RED's thresholds are out of order: {shown}"),
                        "`min` must be below `max`",
                    );
                } else if max_packets > whole {
                    faults.add(
                        at,
                        format!("RED's upper threshold exceeds the queue's limit: {shown}"),
                        "`max` can be at most `limit`",
                    );
                }
                Discipline::Red(Red {
                    min_packets,
                    max_packets,
                    max_probability: probability,
                    weight,
                    gentle,
                })
            }
        };
        let (framing_bytes, yields) = (self.framing_bytes, self.queue.yields.is_some());
        Direction {
            rate_bps: self.rate_bps,
            rate_changes: self.rate_changes,
            delay: self.delay,
            delay_changes: self.delay_changes,
            framing_bytes,
            queue: Queue { limit, discipline, yields },
            losses: self.losses,
            blackouts: self.blackouts,
            reorder: self.reorder,
        }
    }

    fn limit(&self, rtt: Nanos, packet: u32, faults: &Faults) -> Limit {
        let QueueDraft { limit, limit_span, .. } = self.queue;
        match limit {
            Amount::Packets(n) => Limit::Packets(n),
            Amount::Bytes(n) => {
                if n < u64::from(packet) {
                    let help = format!("write at least \"{packet}b\", or packets like \"100p\"");
                    faults.add(
                        limit_span,
                        format!(
                            "a queue of {} holds no packet of {packet} bytes",
                            plural(n, "byte")
                        ),
                        help,
                    );
                }
                Limit::Bytes(n)
            }
            Amount::Bdp(b) => {
                Limit::Bytes(bdp(b, self.rate_bps, rtt, limit_span, faults).max(u64::from(packet)))
            }
            // The reader does not let a limit be a percentage.
            Amount::Percent(_) => Limit::Packets(DEFAULT_LIMIT_PACKETS),
        }
    }
}

/// Bytes of so many bandwidth-delay products, rounded down.
fn bdp(
    times: xcp_law::quantity::Decimal,
    rate_bps: u64,
    rtt: Nanos,
    at: Span,
    faults: &Faults,
) -> u64 {
    let bytes = times
        .scaled(rate_bps, rtt, 8 * u128::from(NANOS_PER_SEC))
        .filter(|b| *b <= u128::from(xcp_law::quantity::MAX_BYTES));
    bytes.map_or_else(
        || {
            faults.add(
                at,
                "this many bandwidth-delay products are more than 10^18 bytes",
                "write a smaller number, or packets like \"100p\"",
            );
            0
        },
        |bytes| bytes as u64,
    )
}

fn limit_bytes(limit: Limit, packet: u32) -> u64 {
    match limit {
        Limit::Packets(n) => n.saturating_mul(packet.into()),
        Limit::Bytes(n) => n,
    }
}

#[expect(clippy::cast_precision_loss, reason = "thresholds are fractions of packets")]
fn packets(limit: Limit, packet: u32) -> f64 {
    match limit {
        Limit::Packets(n) => n as f64,
        Limit::Bytes(n) => n as f64 / f64::from(packet),
    }
}
