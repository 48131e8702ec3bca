//! What could be reached, for a terminal: a perfect predictor, and what no controller can do
//! better.

use xcp_report::grid::Align::{Left, Right};
use xcp_report::grid::Grid;
use xcp_report::human;
use xcp_theory::bound::{MediumReach, Reach, Reached};

/// Most links that are shown; JSON has them all.
const LINKS: usize = 10;

/// Links where something changes that nobody controls.
pub fn links(all: &[Reach], width: usize, out: &mut String) {
    for reach in all.iter().take(LINKS) {
        out.push_str(&format!(
            "\nwhat could be reached at {}: {} on average, decided {} before it arrives\n\n",
            reach.link,
            human::rate_cell(reach.capacity),
            human::seconds(reach.dead_time)
        ));
        let mut grid = Grid::new(&[
            ("a controller", Left),
            ("utilisation", Right),
            ("packets queued", Right),
            ("of the round trip", Right),
        ]);
        let mut row = |name: &str, reached: &Option<Reached>| {
            if let Some(r) = reached {
                grid.push(vec![
                    name.to_owned(),
                    human::percent(r.utilisation),
                    human::number(r.queue),
                    human::number(r.queue_rtts),
                ]);
            }
        };
        row("perfect predictor", &Some(reach.exact));
        row("expecting the sources' mean", &reach.conditional_mean);
        row("not told the rate, two packets standing", &Some(reach.untold));
        row("committing less", &reach.at_95);
        row("a tenth of the round trip standing", &reach.at_tenth);
        if let Some(bound) = &reach.bound {
            let trip = reach.wanted.queue * 10.0;
            let mut row = |name: &str, utilisation: f64, queue: f64| {
                grid.push(vec![
                    name.to_owned(),
                    human::percent(utilisation),
                    human::number(queue),
                    human::number(queue / trip),
                ]);
            };
            row("perfect predictor, mean", bound.exact.utilisation, bound.exact.queue);
            row("shortest queue of any law as full", bound.exact.utilisation, bound.queue_at_exact);
            row("shortest queue of any law at 95 %", reach.wanted.utilisation, bound.queue_at_95);
            row(
                "fullest link of any law with this queue",
                bound.utilisation_at_tenth,
                reach.wanted.queue,
            );
        }
        grid.render(width, out);
        if let Some(bound) = &reach.bound {
            out.push_str(&format!(
                "\nthe rows with means and limits are averages over a random process: {}\n",
                bound.process
            ));
        }
        if let Some(why) = &reach.no_bound {
            out.push_str(&format!("no bound: {why}\n"));
        }
    }
    if all.len() > LINKS {
        out.push_str(&format!("and {} more\n", all.len() - LINKS));
    }
}

/// Shared media.
pub fn media(all: &[MediumReach], width: usize, out: &mut String) {
    out.push_str(
        "\nwhat media can carry of data with an acknowledgement for every second packet\n\n",
    );
    let mut grid = Grid::new(&[
        ("medium", Left),
        ("nothing collides", Right),
        ("data always wait", Right),
        ("collisions a packet", Right),
        ("acknowledgements lost", Right),
    ]);
    let or_dash = |value: Option<f64>, show: fn(f64) -> String| value.map_or("–".into(), show);
    for medium in all {
        grid.push(vec![
            medium.medium.clone(),
            human::percent(medium.without_collisions),
            or_dash(medium.saturated, human::percent),
            or_dash(medium.collisions, human::number),
            or_dash(medium.acknowledgements_lost, human::percent),
        ]);
    }
    grid.render(width, out);
}
