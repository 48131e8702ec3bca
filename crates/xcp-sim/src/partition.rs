//! Divides a network into regions that can run on processors of their own.
//!
//! Whatever happens in one region is felt in another no sooner than the delay of the links between
//! them: the lookahead. In steps of that length all regions can run side by side (conservative
//! parallel simulation after Chandy, Misra and Bryant, with a barrier in place of null messages).
//! So a division is good if its links are long and its regions have equal work. Which one is chosen
//! makes a run faster or slower and changes nothing else.
//!
//! Nodes joined by short links stay together, and so do all nodes of a shared medium, where
//! whatever one does is felt by the others at once. Every length that occurs is tried as the bound
//! between short and long; what hangs together then is dealt out, the heaviest first, each to the
//! region that has least so far; and the division with the shortest estimated time is taken, which
//! may be none at all.

use xcp_model::units::{NANOS_PER_SEC, Nanos};
use xcp_model::{DirectionId, Scenario};

/// Where something is: its region, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The region.
    pub region: u32,
    /// The number among its like.
    pub index: u32,
}

/// A scenario, divided.
#[derive(Debug)]
pub struct Partition {
    /// How many regions there are.
    pub regions: usize,
    /// The least time from one to another.
    pub lookahead: Nanos,
    /// The region of each node.
    nodes: Vec<u32>,
    /// For each link direction the end with queue and transmitter, or all of it.
    near: Vec<Place>,
    /// For each link direction that leads to another region its other end.
    far: Vec<Option<Place>>,
    /// How many links, or ends of them, each region has.
    links: Vec<u32>,
}

/// Work of a packet's stations, in units of a router's on a data packet.
mod work {
    /// A link, for data: the router's law.
    pub const DATA_HOP: f64 = 1.0;
    /// A link, for an acknowledgement.
    pub const ACK_HOP: f64 = 0.4;
    /// The endpoint that sends data and takes acknowledgements.
    pub const SENDER: f64 = 1.8;
    /// The endpoint that takes data and sends acknowledgements.
    pub const RECEIVER: f64 = 1.0;
    /// Regions waiting for each other.
    pub const BARRIER: f64 = 40.0;
}

/// A division must promise to take at most this share of the undivided time.
const WORTH_WHILE: f64 = 0.8;

/// No more lengths of links than this are tried.
const TRIALS: usize = 24;

impl Partition {
    /// One region.
    #[must_use]
    pub fn whole(scenario: &Scenario) -> Self {
        Self::new(scenario, vec![0; scenario.nodes.len()])
    }

    /// At most so many regions, fewer where more would not be faster.
    #[must_use]
    pub fn for_processors(scenario: &Scenario, processors: usize) -> Self {
        let load = Load::new(scenario);
        let mut lengths: Vec<Nanos> = (0..scenario.links.len())
            .map(|link| length(scenario, link))
            .filter(|&length| length > 0)
            .collect();
        lengths.sort_unstable();
        lengths.dedup();
        let step = lengths.len().div_ceil(TRIALS).max(1);
        let tried = lengths.iter().rev().step_by(step);
        // No region without a node, however many processors are offered.
        let most = processors.min(scenario.nodes.len());
        let divisions = tried
            .flat_map(|&length| (2..=most).map(move |regions| (length, regions)))
            .filter_map(|(length, regions)| {
                let nodes = divide(scenario, &load, length, regions)?;
                Some((load.time(scenario, &nodes, regions), nodes))
            });
        match divisions.min_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((time, nodes)) if time < WORTH_WHILE => Self::new(scenario, nodes),
            _ => Self::whole(scenario),
        }
    }

    /// At most so many regions with nothing shorter between them than links of this length, whether
    /// or not that is of any use; `None` if the scenario cannot be divided so.
    #[must_use]
    pub fn at(scenario: &Scenario, long: Nanos, regions: usize) -> Option<Self> {
        let nodes = divide(scenario, &Load::new(scenario), long.max(1), regions)?;
        Some(Self::new(scenario, nodes))
    }

    fn new(scenario: &Scenario, nodes: Vec<u32>) -> Self {
        let regions = nodes.iter().max().map_or(1, |&last| last as usize + 1);
        let mut links = vec![0u32; regions];
        let mut place = |node: usize| {
            let region = nodes[node];
            let index = links[region as usize];
            links[region as usize] += 1;
            Place { region, index }
        };
        let (mut near, mut far) = (Vec::new(), Vec::new());
        let mut lookahead = Nanos::MAX;
        for link in &scenario.links {
            for (direction, [from, to]) in link
                .directions
                .iter()
                .zip([[link.ends[0], link.ends[1]], [link.ends[1], link.ends[0]]])
            {
                near.push(place(from));
                let divided = nodes[from] != nodes[to];
                far.push(divided.then(|| place(to)));
                if divided {
                    lookahead = lookahead.min(direction.delay);
                }
            }
        }
        Self { regions, lookahead, nodes, near, far, links }
    }

    /// The region of a node.
    #[must_use]
    pub fn region(&self, node: usize) -> u32 {
        self.nodes[node]
    }

    /// Where a link direction's queue and transmitter are.
    #[must_use]
    pub fn near_end(&self, link: DirectionId) -> Place {
        self.near[link]
    }

    /// Where the far end of a link direction that leads to another region is.
    #[must_use]
    pub fn far_end(&self, link: DirectionId) -> Option<Place> {
        self.far[link]
    }

    /// Where the packets of a link direction arrive.
    #[must_use]
    pub fn arrives_at(&self, link: DirectionId) -> Place {
        self.far[link].unwrap_or(self.near[link])
    }

    /// How many links, or ends of them, a region has.
    #[must_use]
    pub fn links(&self, region: usize) -> u32 {
        self.links[region]
    }
}

/// Where the ends of the flows are; empty where there is only one region, and they are in it in the
/// flows' order.
#[derive(Debug, Default)]
pub struct Ends {
    sending: Vec<Place>,
    receiving: Vec<Place>,
}

impl Ends {
    /// Gives every end of every flow its place.
    #[must_use]
    pub fn new(scenario: &Scenario, partition: &Partition) -> Self {
        if partition.regions == 1 {
            return Self::default();
        }
        let mut taken = vec![[0u32; 2]; partition.regions];
        let mut place = |node: usize, end: usize| {
            let region = partition.region(node);
            let index = &mut taken[region as usize][end];
            *index += 1;
            Place { region, index: *index - 1 }
        };
        let (sending, receiving) = scenario
            .flows
            .iter()
            .map(|flow| (place(flow.group.from, 0), place(flow.group.to, 1)))
            .unzip();
        Self { sending, receiving }
    }

    /// Where a flow sends from.
    #[must_use]
    pub fn sending(&self, flow: usize) -> Place {
        self.sending.get(flow).copied().unwrap_or(Place { region: 0, index: flow as u32 })
    }

    /// Where it receives.
    #[must_use]
    pub fn receiving(&self, flow: usize) -> Place {
        self.receiving.get(flow).copied().unwrap_or(Place { region: 0, index: flow as u32 })
    }
}

/// The shorter of a link's two delays; none where they change, which is for one region alone.
fn length(scenario: &Scenario, link: usize) -> Nanos {
    let directions = &scenario.links[link].directions;
    if directions.iter().any(|direction| !direction.delay_changes.is_empty()) {
        return 0;
    }
    directions[0].delay.min(directions[1].delay)
}

/// What the flows have to do where, estimated.
struct Load {
    /// Work at each node, per second.
    nodes: Vec<f64>,
    total: f64,
}

impl Load {
    /// Every flow gets an equal part of the link where that is least.
    fn new(scenario: &Scenario) -> Self {
        let direction = |d: DirectionId| &scenario.links[d / 2].directions[d % 2];
        let near = |d: DirectionId| scenario.links[d / 2].ends[d % 2];
        let mut flows_on = vec![0u32; 2 * scenario.links.len()];
        for flow in &scenario.flows {
            for &d in &flow.group.route {
                flows_on[d] += 1;
            }
        }
        let mut nodes = vec![0.0; scenario.nodes.len()];
        for flow in &scenario.flows {
            let group = &flow.group;
            let share = group
                .route
                .iter()
                .map(|&d| direction(d).rate_bps as f64 / f64::from(flows_on[d]))
                .fold(f64::INFINITY, f64::min);
            let rate = share / (8.0 * f64::from(group.packet_bytes.max(1)));
            nodes[group.from] += rate * work::SENDER;
            nodes[group.to] += rate * work::RECEIVER;
            for &d in &group.route {
                nodes[near(d)] += rate * work::DATA_HOP;
            }
            for &d in &group.return_route {
                nodes[near(d)] += rate * work::ACK_HOP;
            }
        }
        let total = nodes.iter().sum();
        Self { nodes, total }
    }

    /// The time that a division will take, as a share of the undivided time.
    fn time(&self, scenario: &Scenario, nodes: &[u32], regions: usize) -> f64 {
        let mut work = vec![0.0; regions];
        for (load, &region) in self.nodes.iter().zip(nodes) {
            work[region as usize] += load;
        }
        let crosses = |link: &usize| {
            nodes[scenario.links[*link].ends[0]] != nodes[scenario.links[*link].ends[1]]
        };
        let lookahead = (0..scenario.links.len())
            .filter(crosses)
            .map(|link| length(scenario, link))
            .min()
            .unwrap_or(Nanos::MAX);
        let steps = NANOS_PER_SEC as f64 / lookahead as f64;
        (work.into_iter().fold(0.0, f64::max) + steps * work::BARRIER)
            / self.total.max(f64::MIN_POSITIVE)
    }
}

/// Divides between links of at least this length; `None` if that leaves less than two parts.
fn divide(scenario: &Scenario, load: &Load, long: Nanos, regions: usize) -> Option<Vec<u32>> {
    let mut part: Vec<usize> = (0..scenario.nodes.len()).collect();
    fn root(part: &mut [usize], mut node: usize) -> usize {
        while part[node] != node {
            part[node] = part[part[node]];
            node = part[node];
        }
        node
    }
    let mut join = |a: usize, b: usize| {
        let (a, b) = (root(&mut part, a), root(&mut part, b));
        part[a.max(b)] = a.min(b);
    };
    // Where a medium is, for all its links.
    let mut media: Vec<Option<usize>> = vec![None; scenario.media.len()];
    for (number, link) in scenario.links.iter().enumerate() {
        if length(scenario, number) < long || link.medium.is_some() {
            join(link.ends[0], link.ends[1]);
        }
        if let Some(medium) = link.medium {
            join(*media[medium].get_or_insert(link.ends[0]), link.ends[0]);
        }
    }
    let mut work = vec![0.0f64; part.len()];
    for node in 0..part.len() {
        let root = root(&mut part, node);
        work[root] += load.nodes[node];
    }
    let mut parts: Vec<usize> =
        (0..part.len()).filter(|&node| part[node] == node && work[node] > 0.0).collect();
    if parts.len() < 2 {
        return None;
    }
    parts.sort_by(|&a, &b| work[b].total_cmp(&work[a]));
    // No region without work: it would only be waited for.
    let regions = regions.min(parts.len());
    let mut sums = vec![0.0f64; regions];
    let mut region_of = vec![0u32; part.len()];
    for part in parts {
        let least = (0..regions).min_by(|&a, &b| sums[a].total_cmp(&sums[b]))?;
        sums[least] += work[part];
        region_of[part] = least as u32;
    }
    Some((0..part.len()).map(|node| region_of[root(&mut part, node)]).collect())
}
