//! Runs made up for the tests: plausible curves without a simulator, the same every time.
#![allow(dead_code, reason = "each test program uses a part")]

use std::collections::BTreeMap;
use std::sync::Arc;

use xcp_model::run::{FlowSummary, LinkSummary, Quantity, Run, Series, Subject, Summary, jain};
use xcp_model::units::{NANOS_PER_SEC, Nanos, Period};
use xcp_model::{
    Direction, Discipline, Law, Limit, Link, Others, Queue, Red, Router, Sampling, Scenario,
};

pub mod browser;

/// What a made-up run is like.
#[derive(Clone, Copy, PartialEq)]
pub enum Manner {
    Xcp,
    DropTail,
    Red,
}

/// A repeatable value in 0..1 that looks random.
fn noise(a: usize, b: usize) -> f64 {
    let x = (a as f64 * 12.9898 + b as f64 * 78.233).sin() * 43758.5453;
    x - x.floor()
}

fn curve(manner: Manner, quantity: Quantity, who: usize, t: f64, n: usize, i: usize) -> f64 {
    let jitter = noise(who + 7 * quantity as usize, i);
    let ramp = 1.0 - (-t / 3.0).exp();
    let saw = ((t + 3.0 * who as f64) / 17.0).fract();
    let bdp = 417.0;
    match (manner, quantity) {
        (Manner::Xcp, Quantity::Utilisation) => (ramp * (0.998 + 0.002 * jitter)).min(1.0),
        (Manner::Xcp, Quantity::QueueMean) => 0.8 * jitter + 6.0 * (-(t - 3.0).powi(2)).exp(),
        (Manner::Xcp, Quantity::QueueMax) => 3.0 + 3.0 * jitter + 9.0 * (-(t - 3.0).powi(2)).exp(),
        (Manner::Xcp, Quantity::Goodput) => {
            9.6e6 / n as f64
                * ramp
                * (1.0 + 0.3 * (0.5 - who as f64 / n as f64) * (-t / 6.0).exp() + 0.004 * jitter)
        }
        (Manner::Xcp, Quantity::Cwnd) => {
            bdp / n as f64 * ramp * (1.0 + 0.3 * (0.5 - who as f64 / n as f64) * (-t / 6.0).exp())
        }
        (Manner::Xcp, Quantity::Srtt) => 0.501 + 0.001 * jitter,
        (Manner::Xcp, _) => 0.0,
        (_, Quantity::Utilisation) => {
            ramp * (if manner == Manner::Red { 0.86 } else { 0.97 }) + 0.03 * jitter * ramp
        }
        (Manner::DropTail, Quantity::QueueMean) => ramp * (390.0 + 430.0 * saw),
        (Manner::DropTail, Quantity::QueueMax) => ramp * (405.0 + 430.0 * saw),
        (Manner::Red, Quantity::QueueMean) => ramp * (60.0 + 120.0 * saw * jitter),
        (Manner::Red, Quantity::QueueMax) => ramp * (90.0 + 180.0 * saw),
        (_, Quantity::Drops) if saw > 0.97 => (12.0 * jitter).floor(),
        (_, Quantity::Goodput) => {
            2.2e6 * 4.0 / n as f64 * ramp * (0.55 + 0.9 * saw) * (1.0 + 0.1 * jitter)
        }
        (_, Quantity::Cwnd) => (bdp * 2.0 / n as f64) * ramp * (0.5 + 0.5 * saw),
        (Manner::DropTail, Quantity::Srtt) => 0.501 + ramp * (0.47 + 0.5 * saw),
        (Manner::Red, Quantity::Srtt) => 0.501 + ramp * (0.1 + 0.15 * saw),
        _ => 0.0,
    }
}

/// A run of `flows` flows for 60 s, sampled every 0.1 s.
pub fn run(manner: Manner, flows: usize) -> Run {
    let times: Arc<Vec<Nanos>> = Arc::new((1..=600).map(|i| i * NANOS_PER_SEC / 10).collect());
    let variant = match manner {
        Manner::Xcp => "XCP",
        Manner::DropTail => "TCP, drop-tail",
        Manner::Red => "TCP, RED",
    };
    let mut series = Vec::new();
    let mut add = |subject: &Subject, quantity, who, n| {
        let values = times
            .iter()
            .enumerate()
            .map(|(i, &t)| curve(manner, quantity, who, t as f64 / 1e9, n, i))
            .collect();
        series.push(Series {
            subject: subject.clone(),
            quantity,
            times: Arc::clone(&times),
            values,
        });
    };
    let mut quantities = vec![
        Quantity::Utilisation,
        Quantity::QueueMean,
        Quantity::QueueMax,
        Quantity::Drops,
        Quantity::Lost,
    ];
    if manner == Manner::Xcp {
        quantities.extend([Quantity::ControlInterval, Quantity::FlowsEstimated, Quantity::Phi]);
    }
    for q in quantities {
        add(&Subject::Link("bottleneck".into()), q, 0, flows);
        if matches!(q, Quantity::Utilisation | Quantity::QueueMean | Quantity::Drops) {
            add(&Subject::Link("bottleneck.reverse".into()), q, 3, flows);
        }
    }
    let name = |i: usize| format!("flow-{}", i + 1);
    for i in 0..flows {
        for q in [Quantity::Goodput, Quantity::Cwnd, Quantity::Srtt] {
            add(&Subject::Flow(name(i)), q, i, flows);
        }
    }
    let mean = |values: &[f64]| values[200..].iter().sum::<f64>() / 400.0;
    let of = |subject: Subject, q| {
        mean(
            &series
                .iter()
                .find(|s| s.quantity == q && s.subject == subject)
                .unwrap()
                .values
                .to_vec(),
        )
    };
    let link = || Subject::Link("bottleneck".into());
    let drops = 400.0 * of(link(), Quantity::Drops);
    let links = BTreeMap::from([
        (
            "bottleneck".to_owned(),
            LinkSummary {
                utilisation: of(link(), Quantity::Utilisation),
                queue_mean: of(link(), Quantity::QueueMean),
                queue_max: 2 * of(link(), Quantity::QueueMax) as u64,
                drops: drops as u64,
                refused: 0,
                lost: 0,
                packets: 33_000,
                queue_delay: None,
            },
        ),
        (
            "bottleneck.reverse".to_owned(),
            LinkSummary {
                utilisation: 0.031,
                queue_mean: 0.01,
                queue_max: 2,
                drops: 0,
                refused: 0,
                lost: 0,
                packets: 33_000,
                queue_delay: None,
            },
        ),
        (
            "S-R".to_owned(),
            LinkSummary {
                utilisation: 0.1,
                queue_mean: 0.02,
                queue_max: 4,
                drops: 0,
                refused: 0,
                lost: 0,
                packets: 33_000,
                queue_delay: None,
            },
        ),
    ]);
    let flow_summaries: Vec<FlowSummary> = (0..flows)
        .map(|i| FlowSummary {
            name: name(i).into(),
            active: true,
            goodput: of(Subject::Flow(name(i)), Quantity::Goodput),
            rtt_mean: of(Subject::Flow(name(i)), Quantity::Srtt),
            retransmits: (drops / flows as f64) as u64,
            timeouts: 0,
            cwnd_mean: of(Subject::Flow(name(i)), Quantity::Cwnd),
            completed_at: None,
            completion_time: None,
            start: 0.0,
            bytes: None,
        })
        .collect();
    let title = "Four flows on a 10 Mbit/s, 500 ms path".to_owned();
    let summary = Summary {
        seed: 1,
        backend: "sim".into(),
        title: title.clone(),
        variant: variant.into(),
        links,
        jain: jain(&flow_summaries.iter().map(|f| f.goodput).collect::<Vec<_>>()),
        flows: flow_summaries,
        groups: Vec::new(),
        interrupted: false,
        notes: Vec::new(),
    };
    Run {
        title,
        variant: variant.into(),
        completed: 60 * NANOS_PER_SEC,
        duration: 60 * NANOS_PER_SEC,
        summary,
        series,
    }
}

/// The part of a scenario that a report looks at.
pub fn scenario(manner: Manner) -> Scenario {
    let limit = Limit::Bytes(1_250_000);
    let law = Law::xcp();
    let discipline = match manner {
        Manner::Xcp => Discipline::Xcp(Router {
            law,
            changes: Vec::new(),
            others: Others::Shared,
            police: None,
        }),
        Manner::DropTail => Discipline::DropTail,
        Manner::Red => Discipline::Red(Red {
            min_packets: 138.0,
            max_packets: 416.0,
            max_probability: 0.1,
            weight: None,
            gentle: true,
        }),
    };
    let queue = Queue { limit, discipline, yields: false };
    let direction = |rate_bps, delay, queue| Direction {
        rate_bps,
        rate_changes: Vec::new(),
        delay_changes: Vec::new(),
        delay,
        framing_bytes: 0,
        queue,
        losses: Vec::new(),
        blackouts: Vec::new(),
        reorder: None,
    };
    let plain = || Queue::drop_tail(Limit::Packets(1000));
    Scenario {
        title: "Four flows on a 10 Mbit/s, 500 ms path".into(),
        variant: String::new(),
        description: "The same four transfers over the same satellite-like path: once with \
            explicit feedback, twice with TCP."
            .into(),
        duration: 60 * NANOS_PER_SEC,
        seed: 1,
        measure: Period { from: 20 * NANOS_PER_SEC, to: 60 * NANOS_PER_SEC },
        sample: Sampling::Every(NANOS_PER_SEC / 10),
        series: true,
        nodes: vec!["S".into(), "R".into(), "D".into()],
        links: vec![Link {
            name: "bottleneck".into(),
            ends: [1, 2],
            directions: [
                direction(10_000_000, 249_000_000, queue),
                direction(10_000_000, 249_000_000, plain()),
            ],
            medium: None,
        }],
        media: Vec::new(),
        flows: Vec::new(),
        expectations: Vec::new(),
    }
}
