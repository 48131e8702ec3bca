//! Reads what happens to packets on a link's way: losses, blackouts, and that others overtake them.

use xcp_model::units::{Nanos, Period};
use xcp_model::{Loss, LossPlace, Reorder};

use crate::fields::Fields;
use crate::spec::{BLACKOUT, LOSS, REORDER, Spec};
use crate::tree::{Item, Value};

/// The sides (0 forward, 1 reverse) something applies to.
fn sides(fields: &Fields<'_>, allowed: bool) -> Vec<usize> {
    if !allowed && fields.item("direction").is_some() {
        let what = "`direction` is not allowed inside `reverse`";
        fields.faults.add(
            fields.span_of("direction"),
            what,
            "leave it out, or move the table to the link itself",
        );
    }
    match fields.choice("direction") {
        Some("forward") => vec![0],
        Some("reverse") => vec![1],
        _ => vec![0, 1],
    }
}

/// The tables of a list that short forms have been expanded in.
fn listed_tables<'a>(fields: &Fields<'a>, name: &str, spec: &'static Spec) -> Vec<Fields<'a>> {
    match fields.item(name) {
        Some(Item { value: Value::Array(items), .. }) => {
            items.iter().filter_map(|i| Fields::of(fields.faults, spec, i)).collect()
        }
        _ => Vec::new(),
    }
}

/// `loss` of a link, each with the sides (0 forward, 1 reverse) that it applies to. `directed`: may
/// it say which, or is it one direction's?
pub(crate) fn losses(
    fields: &Fields<'_>,
    duration: Nanos,
    directed: bool,
) -> Vec<(Loss, Vec<usize>)> {
    let read = |loss: Fields<'_>| {
        loss.require("probability");
        let place = if loss.choice("place") == Some("before-queue") {
            LossPlace::BeforeQueue
        } else {
            LossPlace::AfterQueue
        };
        let period = period(&loss, 0, duration)?;
        let sides = sides(&loss, directed);
        Some((Loss { probability: loss.number("probability")?, place, period }, sides))
    };
    listed_tables(fields, "loss", &LOSS).into_iter().filter_map(read).collect()
}

/// `blackout` of a link, likewise.
pub(crate) fn blackouts(fields: &Fields<'_>, directed: bool) -> Vec<(Period, Vec<usize>)> {
    let read = |blackout: Fields<'_>| {
        blackout.require("from");
        blackout.require("to");
        let sides = sides(&blackout, directed);
        Some((period(&blackout, 0, Nanos::MAX)?, sides))
    };
    listed_tables(fields, "blackout", &BLACKOUT).into_iter().filter_map(read).collect()
}

/// `reorder` of a link, likewise, if it is there.
pub(crate) fn reorder(fields: &Fields<'_>, directed: bool) -> Option<(Reorder, Vec<usize>)> {
    let reorder = fields.table("reorder", &REORDER)?;
    reorder.require("probability");
    reorder.require("most");
    let sides = sides(&reorder, directed);
    let probability = reorder.number("probability")?;
    Some((Reorder { probability, most: reorder.time("most")? }, sides))
}

/// `from` and `to`, in this order in time.
pub(crate) fn period(fields: &Fields<'_>, from: Nanos, to: Nanos) -> Option<Period> {
    let period =
        Period { from: fields.time("from").unwrap_or(from), to: fields.time("to").unwrap_or(to) };
    if period.from < period.to {
        return Some(period);
    }
    let late = if fields.item("to").is_some() { "to" } else { "from" };
    let what = format!(
        "the period ends at {} and begins at {}",
        xcp_law::quantity::show_time(period.to),
        xcp_law::quantity::show_time(period.from)
    );
    fields.faults.add(
        fields.span_of(late),
        what,
        "`to` must be later than `from`, and `from` before the end of the run",
    );
    None
}
