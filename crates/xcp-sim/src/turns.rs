//! Which links of a scenario need turns to transmit, and with whom they take them.

use xcp_model::{Direction, DirectionId, MediumId, Others, Scenario};

/// A link direction.
#[must_use]
pub fn direction(scenario: &Scenario, number: DirectionId) -> &Direction {
    &scenario.links[number / 2].directions[number % 2]
}

/// What a link direction does with traffic that is not XCP's.
#[must_use]
pub fn others(scenario: &Scenario, number: DirectionId) -> Others {
    direction(scenario, number).queue.router().map_or(Others::Shared, |router| router.others)
}

/// Whether a link direction's packets have to wait for its turn: it shares a medium, or has queues
/// for two classes.
#[must_use]
pub fn needs_turns(scenario: &Scenario, number: DirectionId) -> bool {
    scenario.links[number / 2].medium.is_some() || others(scenario, number) != Others::Shared
}

/// Who takes turns with whom: the links of each shared medium, and alone those that share none.
#[must_use]
pub fn media(scenario: &Scenario) -> Vec<(Option<MediumId>, Vec<DirectionId>)> {
    let mut media: Vec<(Option<MediumId>, Vec<DirectionId>)> =
        (0..scenario.media.len()).map(|medium| (Some(medium), Vec::new())).collect();
    for number in (0..2 * scenario.links.len()).filter(|&number| needs_turns(scenario, number)) {
        match scenario.links[number / 2].medium {
            Some(medium) => media[medium].1.push(number),
            None => media.push((None, vec![number])),
        }
    }
    media
}
