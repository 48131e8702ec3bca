//! Networks and scenarios the tests share.

use std::path::Path;

use xcp_model::Scenario;
use xcp_scenario::{Overrides, load};
use xcp_theory::network::{Class, Gain, Interval, Link, Network, Others, Router, Sharing};

/// An XCP router as in 2002.
#[allow(dead_code, reason = "each test file uses its own part")]
pub fn router(capacity: f64) -> Router {
    Router {
        capacity,
        alpha: 0.4,
        beta: 0.226,
        gamma: 0.1,
        target: 0.0,
        others: Others::Input,
        interval: Interval::Mean,
        shortest: 1e-4,
        longest: 65.536,
        gain: Gain::Uniform,
        sharing: Sharing::Low,
        pools: true,
        calendar: false,
        own_queue: None,
    }
}

/// A link with such a router.
#[allow(dead_code, reason = "each test file uses its own part")]
pub fn link(name: &str, rate: f64, datagrams: f64) -> Link {
    Link { name: name.into(), rate, datagrams, limit: 1e9, router: Some(router(rate)) }
}

/// Equal XCP flows.
#[allow(dead_code, reason = "each test file uses its own part")]
pub fn class(name: &str, count: usize, route: &[usize], rtt: f64) -> Class {
    Class {
        name: name.into(),
        count,
        route: route.to_vec(),
        reach: vec![0.0; route.len()],
        rtt,
        packet: 1000.0,
        payload: 936.0,
        limit: None,
        explicit: true,
        paced: true,
        keeps_rate: false,
        initial_window: 2.0,
        start: 0.0,
    }
}

/// The first figure of iXCP: n long flows over 155 and 100 Mbit/s, a short one over the first.
#[allow(dead_code, reason = "each test file uses its own part")]
pub fn two_links(n: usize) -> Network {
    Network {
        links: vec![link("first", 155e6, 0.0), link("second", 100e6, 0.0)],
        classes: vec![class("long", n, &[0, 1], 0.08), class("short", 1, &[0], 0.04)],
        left_out: 0,
        media: false,
    }
}

/// The one scenario of a text.
#[allow(dead_code, reason = "each test file uses its own part")]
pub fn scenario(text: &str) -> Scenario {
    load(Path::new("test.toml"), text, &Overrides::none())
        .unwrap_or_else(|e| panic!("{e}"))
        .remove(0)
}
