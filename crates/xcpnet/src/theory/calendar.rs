//! What theory's tables have besides where routers have a calendar (`law = "robust"`).

use xcp_report::grid::Align::{Left, Right};
use xcp_report::grid::Grid;
use xcp_report::human;
use xcp_theory::calendar::{LATE_MOST, OBEYED_LEAST, OBEYED_MOST};
use xcp_theory::said::{FluidSaid, Said};

use super::show::ROWS;

const NOTE: &str = "
a loop with a calendar is stable while grants are seen at most this much later or earlier than
booked, or while senders carry out a fraction of them within this range; gain: the share of a gap
that is closed in each part, and the largest that would be stable without a calendar

";

/// How wrong calendars and senders may be; nothing where there is no calendar.
pub fn table(said: &Said, width: usize, out: &mut String) {
    let mut grid = Grid::new(&[
        ("calendar of", Left),
        ("part", Right),
        ("late by", Right),
        ("in parts", Right),
        ("early by", Right),
        ("in parts", Right),
        ("obeyed", Right),
        ("gain", Right),
        ("without calendar", Right),
    ]);
    let mut any = false;
    for link in said.links.iter().take(ROWS) {
        let Some(margins) = &link.margins else { continue };
        let Some(m) = &margins.calendar else { continue };
        any = true;
        let beyond = |at_end: bool| if at_end { "> " } else { "" };
        let late = beyond(m.late >= LATE_MOST * margins.interval);
        grid.push(vec![
            link.name.clone(),
            human::seconds_cell(m.part),
            format!("{late}{}", human::seconds_cell(m.late)),
            format!("{:.2}", m.late_parts),
            human::seconds_cell(m.early),
            format!("{:.2}", m.early_parts),
            format!(
                "{}{:.2} to {}{:.2}",
                if m.obeyed_least <= OBEYED_LEAST { "< " } else { "" },
                m.obeyed_least,
                beyond(m.obeyed_most >= OBEYED_MOST),
                m.obeyed_most
            ),
            format!("{:.2}", m.gain),
            format!("{:.2}", m.gain_without),
        ]);
    }
    if any {
        out.push_str(NOTE);
        grid.render(width, out);
    }
}

/// The fluid's links, with the mean queue.
pub fn queues(moved: &FluidSaid, width: usize, out: &mut String) {
    let mut grid = Grid::new(&[
        ("link", Left),
        ("utilisation", Right),
        ("mean queue", Right),
        ("largest queue", Right),
    ]);
    let kilobytes = |bytes: f64| format!("{} kB", human::number(bytes / 1e3));
    for link in moved.links.iter().take(ROWS) {
        grid.push(vec![
            link.name.clone(),
            human::percent(link.utilisation),
            link.queue_mean.map_or_else(|| "–".to_owned(), kilobytes),
            kilobytes(link.queue_max),
        ]);
    }
    grid.render(width, out);
}
