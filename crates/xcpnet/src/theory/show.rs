//! Theory's tables for a terminal.

use xcp_report::grid::Align::{Left, Right};
use xcp_report::grid::Grid;
use xcp_report::human;
use xcp_theory::said::{FluidSaid, Said};

use super::{calendar, reach};

/// Most rows of a table; more are told by their number. JSON has them all.
pub const ROWS: usize = 40;

/// All of it.
pub fn text(said: &Said, width: usize) -> String {
    let name = if said.variant.is_empty() { String::new() } else { format!(", {}", said.variant) };
    let mut out = format!(
        "{}{name}: at {}; rates on the wire, headers included\n\n",
        said.title,
        human::seconds(said.at)
    );
    if said.flows.is_empty() {
        out.push_str("there is no flow that lasts\n");
    } else {
        flows(said, width, &mut out);
        out.push('\n');
        links(said, width, &mut out);
        calendar::table(said, width, &mut out);
    }
    if let Some(why) = &said.no_equilibrium {
        out.push_str(&format!("\nno equilibrium: {why}\n"));
    }
    match (&said.fluid, &said.no_fluid) {
        (Some(moved), _) => fluid(moved, width, &mut out),
        (None, Some(why)) => out.push_str(&format!("\nno fluid model: {why}\n")),
        (None, None) => {}
    }
    if !said.reach.is_empty() {
        reach::links(&said.reach, width, &mut out);
    }
    if !said.media.is_empty() {
        reach::media(&said.media, width, &mut out);
    }
    for note in &said.notes {
        out.push_str(&format!("\nnote: {note}\n"));
    }
    out
}

fn flows(said: &Said, width: usize, out: &mut String) {
    let mut grid = Grid::new(&[
        ("flow", Left),
        ("flows", Right),
        ("RTT", Right),
        ("max-min", Right),
        ("goodput", Right),
        ("held by", Left),
        ("equilibrium", Right),
        ("goodput", Right),
        ("held by", Left),
    ]);
    for flow in said.flows.iter().take(ROWS) {
        let mut row = vec![
            flow.name.clone(),
            flow.count.to_string(),
            human::seconds_cell(flow.rtt),
            human::rate_cell(flow.max_min.rate.wire),
            human::rate_cell(flow.max_min.rate.goodput),
            flow.max_min.held_by.clone(),
        ];
        row.extend(match &flow.equilibrium {
            Some(share) => [
                human::rate_cell(share.rate.wire),
                human::rate_cell(share.rate.goodput),
                share.held_by.clone(),
            ],
            None => ["–", "–", ""].map(str::to_owned),
        });
        grid.push(row);
    }
    grid.render(width, out);
    rest(said.flows.len(), out);
}

fn links(said: &Said, width: usize, out: &mut String) {
    let mut grid = Grid::new(&[
        ("link", Left),
        ("rate", Right),
        ("datagrams", Right),
        ("max-min", Right),
        ("equilibrium", Right),
        ("cap z", Right),
        ("queue", Right),
        ("interval", Right),
        ("phase margin", Right),
        ("gain margin", Right),
        ("fairness", Right),
        ("locally", Left),
    ]);
    for link in said.links.iter().take(ROWS) {
        let dash = || "–".to_owned();
        let rest = link.equilibrium.as_ref();
        let mut row = vec![
            link.name.clone(),
            human::rate_cell(link.rate),
            human::rate_cell(link.datagrams),
            human::percent(link.max_min_utilisation),
            rest.map_or_else(dash, |r| human::percent(r.utilisation)),
            rest.and_then(|r| r.cap).map_or_else(dash, human::rate_cell),
            rest.and_then(|r| r.queue)
                .map_or_else(dash, |q| format!("{} kB", human::number(q / 1e3))),
        ];
        row.extend(match &link.margins {
            Some(m) => [
                human::seconds_cell(m.interval),
                format!("{:.0}°", m.phase_degrees),
                format!("x {:.2}", m.gain),
                format!("{:.2} of 1.57", m.fairness),
                if m.stable { "stable" } else { "unstable" }.to_owned(),
            ],
            None => [dash(), dash(), dash(), dash(), String::new()],
        });
        grid.push(row);
    }
    grid.without("datagrams", "0.00 bit/s").render(width, out);
    rest(said.links.len(), out);
}

fn fluid(moved: &FluidSaid, width: usize, out: &mut String) {
    out.push_str("\nfluid model, over the measured period\n\n");
    let mut grid = Grid::new(&[
        ("flow", Left),
        ("flows", Right),
        ("mean", Right),
        ("goodput", Right),
        ("deviation", Right),
        ("settled at", Right),
    ]);
    for flow in moved.flows.iter().take(ROWS) {
        grid.push(vec![
            flow.name.clone(),
            flow.count.to_string(),
            human::rate_cell(flow.mean.wire),
            human::rate_cell(flow.mean.goodput),
            format!("± {}", human::percent(flow.cov)),
            flow.settled.map_or("never".to_owned(), human::seconds_cell),
        ]);
    }
    grid.render(width, out);
    rest(moved.flows.len(), out);
    out.push('\n');
    if moved.links.iter().any(|link| link.queue_mean.is_some()) {
        return calendar::queues(moved, width, out);
    }
    let mut grid = Grid::new(&[("link", Left), ("utilisation", Right), ("largest queue", Right)]);
    for link in moved.links.iter().take(ROWS) {
        grid.push(vec![
            link.name.clone(),
            human::percent(link.utilisation),
            format!("{} kB", human::number(link.queue_max / 1e3)),
        ]);
    }
    grid.render(width, out);
}

fn rest(rows: usize, out: &mut String) {
    if rows > ROWS {
        out.push_str(&format!("and {} more\n", rows - ROWS));
    }
}
