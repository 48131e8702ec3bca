//! Nodes and links become namespaces, cables, queues and lines.

use xcp_linux::qdisc;
use xcp_model::steps::Steps;
use xcp_model::{DirectionId, Discipline, LossPlace, Others, Scenario};

use super::{
    FASTEST_SHAPED_BPS, HUB, Line, Meter, Places, Plan, Role, Shaper, direction, direction_name,
};
use crate::LabError;

/// Makes namespaces for all nodes and whatever connects them.
pub(super) fn build(plan: &mut Plan, scenario: &Scenario) -> Result<Places, LabError> {
    let nodes: Vec<_> =
        scenario.nodes.iter().map(|name| plan.space(Role::Node, name.clone())).collect();
    let mut places = Places {
        ends: nodes.clone(),
        nodes,
        hubs: vec![None; scenario.nodes.len()],
        exits: vec![usize::MAX; 2 * scenario.links.len()],
        gates: Vec::new(),
    };
    for (node, name) in scenario.nodes.iter().enumerate() {
        if scenario.flows.iter().any(|flow| flow.group.from == node) {
            let host = plan.space(Role::Host, format!("{name}'s host"));
            places.ends[node] = host;
            let ends = plan.cable((places.nodes[node], HUB), (host, HUB));
            plan.neighbours.extend([(ends[0], ends[1]), (ends[1], ends[0])]);
            places.hubs[node] = Some(ends);
        }
    }
    for number in 0..scenario.links.len() {
        link(plan, scenario, &mut places, number)?;
    }
    Ok(places)
}

/// What a link direction needs beside a cable.
struct Needs {
    /// A queue of the kernel's.
    shaper: bool,
    /// A line of its own on the way to its queue.
    gate: bool,
    /// A line between the queue and the other end.
    line: bool,
}

impl Needs {
    fn of(scenario: &Scenario, number: DirectionId) -> Result<Self, LabError> {
        let (direction, _) = direction(scenario, number);
        let fastest = direction.fastest_bps();
        let shaped = fastest <= FASTEST_SHAPED_BPS;
        // What has no queue here is not to be run in the kernel's: `only_simulated` refuses it.
        let red = match direction.queue.discipline {
            Discipline::Red(_) => true,
            Discipline::DropTail | Discipline::Xcp(_) => false,
        };
        let xcp = direction.queue.router().is_some();
        let changes = !direction.rate_changes.is_empty();
        if !shaped && (red || xcp || changes) {
            return Err(LabError::Refused(format!(
                "link direction \"{}\": {} Gbit/s is more than the lab can shape, and without \
                 shaping there is no {}: write rates of at most {} Gbit/s{}",
                direction_name(scenario, number),
                fastest / 1_000_000_000,
                match (red, xcp) {
                    (true, _) => "queue for RED",
                    (_, true) => "queue for an XCP router",
                    _ => "rate that could change",
                },
                FASTEST_SHAPED_BPS / 1_000_000_000,
                if changes { "" } else { " or queue = \"drop-tail\"" },
            )));
        }
        if let Some(what) = only_simulated(scenario, number) {
            let name = direction_name(scenario, number);
            return Err(LabError::Refused(format!(
                "link direction \"{name}\": the lab has no {what}: simulate it (without --on)"
            )));
        }
        let before = direction.losses.iter().any(|loss| loss.place == LossPlace::BeforeQueue);
        let after = direction.losses.iter().any(|loss| loss.place == LossPlace::AfterQueue);
        Ok(Self {
            shaper: shaped && !red,
            // A line that is the queue can lose before it.
            gate: before && !red,
            line: red
                || after
                || direction.longest_delay() > 0
                || !direction.blackouts.is_empty()
                || direction.reorder.is_some(),
        })
    }
}

/// What of a link direction only the simulator has.
fn only_simulated(scenario: &Scenario, number: DirectionId) -> Option<&'static str> {
    let (direction, _) = direction(scenario, number);
    if scenario.links[number / 2].medium.is_some() {
        Some("shared media")
    } else if direction.framing_bytes > 0 {
        Some("framing other than its own (Ethernet's header is part of a packet)")
    } else {
        None
    }
}

fn link(
    plan: &mut Plan,
    scenario: &Scenario,
    places: &mut Places,
    number: usize,
) -> Result<(), LabError> {
    let link = &scenario.links[number];
    let directions = [2 * number, 2 * number + 1];
    let needs = [Needs::of(scenario, directions[0])?, Needs::of(scenario, directions[1])?];
    let spaces = link.ends.map(|node| places.nodes[node]);
    let name = format!("l{number}");
    let wired = needs.iter().any(|n| n.line || n.gate);
    if !wired {
        let ends = plan.cable((spaces[0], &name), (spaces[1], &name));
        for side in [0, 1] {
            plan.neighbours.push((ends[side], ends[1 - side]));
            places.exits[directions[side]] = ends[side];
            meter(plan, scenario, directions[side], ends[side], needs[side].shaper);
        }
        return Ok(());
    }
    let wire = wire(plan);
    let near = [0, 1].map(|side| {
        plan.cable((spaces[side], &name), (wire, &format!("{name}{}", ["a", "b"][side])))
    });
    for side in [0, 1] {
        let direction = directions[side];
        let [exit, entry] = near[side];
        let [there, last] = near[1 - side];
        places.exits[direction] = exit;
        let (queue, input) = if needs[side].gate {
            let gate = plan
                .space(Role::Gate, format!("the gate of {}", direction_name(scenario, direction)));
            let way_in = plan.cable((gate, "in"), (wire, &format!("{name}{}i", ["a", "b"][side])));
            let way_out =
                plan.cable((gate, "out"), (wire, &format!("{name}{}o", ["a", "b"][side])));
            plan.neighbours.push((exit, way_in[0]));
            plan.neighbours.push((way_out[0], there));
            places.gates.push((direction, gate, way_out[0]));
            line(plan, scenario, direction, [entry, way_in[1]], true);
            (way_out[0], way_out[1])
        } else {
            plan.neighbours.push((exit, there));
            (exit, entry)
        };
        line(plan, scenario, direction, [input, last], false);
        meter(plan, scenario, direction, queue, needs[side].shaper);
    }
    Ok(())
}

/// The namespace of all lines.
fn wire(plan: &mut Plan) -> usize {
    plan.spaces
        .iter()
        .position(|s| s.role == Role::Wire)
        .unwrap_or_else(|| plan.space(Role::Wire, "the wire".into()))
}

/// A line from one of the wire's devices to another: to a direction's queue, or from it.
fn line(
    plan: &mut Plan,
    scenario: &Scenario,
    number: DirectionId,
    [input, output]: [usize; 2],
    before_queue: bool,
) {
    let (direction, _) = direction(scenario, number);
    let queue = !before_queue && matches!(direction.queue.discipline, Discipline::Red(_));
    let place = if before_queue { LossPlace::BeforeQueue } else { LossPlace::AfterQueue };
    plan.lines.push(Line {
        direction: number,
        input,
        output,
        delays: if before_queue { Steps::default() } else { direction.delays() },
        losses: direction
            .losses
            .iter()
            .filter(|loss| queue || loss.place == place)
            .cloned()
            .collect(),
        before_queue,
        blackouts: if before_queue { Vec::new() } else { direction.blackouts.clone() },
        reorder: direction.reorder.filter(|_| !before_queue),
        queue,
    });
}

/// The kernel's word for the scenario's. What is split has a law of less capacity besides, which
/// the scenario's reader has seen to.
fn classes(others: Others) -> Option<qdisc::Others> {
    match others {
        Others::Shared => None,
        Others::First => Some(qdisc::Others::First),
        Others::Last => Some(qdisc::Others::Last),
        Others::Fair { share } | Others::Split { share } => Some(qdisc::Others::fair(share)),
    }
}

/// The queue at a direction's device, and where its packets are counted. Called for each direction
/// in turn.
fn meter(plan: &mut Plan, scenario: &Scenario, number: DirectionId, device: usize, shaper: bool) {
    let (direction, _) = direction(scenario, number);
    let meter = if shaper {
        let router = direction.queue.router();
        plan.shapers.push(Shaper {
            direction: number,
            device,
            rates: direction.rates(),
            limit: direction.queue.limit,
            router: router.is_some(),
            others: router.and_then(|router| classes(router.others)),
        });
        Meter::Shaper(plan.shapers.len() - 1)
    } else if let Some(line) =
        plan.lines.iter().position(|line| line.direction == number && line.queue)
    {
        Meter::Line(line)
    } else {
        plan.note(format!(
            "links above {} Gbit/s are not shaped, but as fast as this machine",
            FASTEST_SHAPED_BPS / 1_000_000_000
        ));
        Meter::Device(device)
    };
    debug_assert_eq!(plan.meters.len(), number);
    plan.meters.push(meter);
}
