//! Routes: least total delay, then fewest links, then order of appearance in the file. Finds paths;
//! reading and checking flows is `flows.rs`'s.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use xcp_model::units::Nanos;
use xcp_model::{DirectionId, NodeId};

/// The network as routing sees it.
#[derive(Debug)]
pub(crate) struct Graph {
    /// By node: directions that leave it with the node they reach, in order of appearance.
    out: Vec<Vec<(DirectionId, NodeId)>>,
    /// By direction.
    delays: Vec<Nanos>,
    /// Paths from nodes asked for so far: by node, the direction it is best reached by.
    trees: HashMap<NodeId, Vec<Option<Hop>>>,
}

/// A direction and the node it comes from.
type Hop = (DirectionId, NodeId);
/// Total delay, then links. Delays are at most 10^17 ns each: 128 bits hold any sum.
type Cost = (u128, usize);

impl Graph {
    /// `ends` and `delays` of each link, in the file's order; delays along and against `ends`.
    pub fn new(nodes: usize, links: &[([NodeId; 2], [Nanos; 2])]) -> Self {
        let mut graph =
            Self { out: vec![Vec::new(); nodes], delays: Vec::new(), trees: HashMap::new() };
        for (i, ([a, b], [there, back])) in links.iter().enumerate() {
            graph.out[*a].push((2 * i, *b));
            graph.out[*b].push((2 * i + 1, *a));
            graph.delays.extend([*there, *back]);
        }
        graph
    }

    /// The directions from one node to another; `None` where there is no way, empty where both are
    /// the same.
    pub fn path(&mut self, from: NodeId, to: NodeId) -> Option<Vec<DirectionId>> {
        if !self.trees.contains_key(&from) {
            let tree = self.tree(from);
            self.trees.insert(from, tree);
        }
        let tree = &self.trees[&from];
        let mut path = Vec::new();
        let mut at = to;
        while at != from {
            let (direction, before) = tree[at]?;
            path.push(direction);
            at = before;
        }
        path.reverse();
        Some(path)
    }

    /// The nodes that can be reached from one.
    pub fn reachable(&self, from: NodeId) -> Vec<NodeId> {
        let tree = self.tree(from);
        (0..tree.len()).filter(|n| *n == from || tree[*n].is_some()).collect()
    }

    /// Dijkstra's algorithm. Among equally good ways into a node the direction that appears first
    /// in the file wins.
    fn tree(&self, from: NodeId) -> Vec<Option<Hop>> {
        let mut best: Vec<Option<(Cost, Option<Hop>)>> = vec![None; self.out.len()];
        best[from] = Some(((0, 0), None));
        let mut heap = BinaryHeap::from([Reverse(((0u128, 0usize), from))]);
        while let Some(Reverse((cost, node))) = heap.pop() {
            if best[node].is_some_and(|(known, _)| known < cost) {
                continue;
            }
            for &(direction, next) in &self.out[node] {
                let new = (cost.0 + u128::from(self.delays[direction]), cost.1 + 1);
                let better = match best[next] {
                    None => true,
                    Some((known, by)) => {
                        new < known || (new == known && by.is_some_and(|(d, _)| direction < d))
                    }
                };
                if better {
                    if best[next].is_none_or(|(known, _)| new < known) {
                        heap.push(Reverse((new, next)));
                    }
                    best[next] = Some((new, Some((direction, node))));
                }
            }
        }
        best.into_iter().map(|b| b.and_then(|(_, by)| by)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn delay_before_hops_before_order() {
        // 0 to 3: over 1 (2 ms, first), over 2 (2 ms), directly (3 ms).
        let mut graph = Graph::new(
            4,
            &[
                ([0, 1], [1, 1]),
                ([0, 2], [1, 1]),
                ([2, 3], [1, 1]),
                ([1, 3], [1, 1]),
                ([0, 3], [3, 3]),
            ],
        );
        assert_eq!(
            graph.path(0, 3),
            Some(vec![4 - 2, 4]),
            "the direction into 3 that appears first: link 2, over node 2"
        );
        let mut graph = Graph::new(3, &[([0, 1], [1, 1]), ([1, 2], [1, 1]), ([0, 2], [2, 2])]);
        assert_eq!(graph.path(0, 2), Some(vec![4]), "same delay: fewest links");
        assert_eq!(graph.path(2, 2), Some(vec![]));
        let mut graph = Graph::new(3, &[([0, 1], [1, 1])]);
        assert_eq!(graph.path(0, 2), None);
        assert_eq!(graph.reachable(1), vec![0, 1]);
    }

    proptest! {
        /// Against Floyd and Warshall's algorithm.
        #[test]
        fn paths_are_shortest(links in prop::collection::vec(((0usize..8, 0usize..8), (0u64..5, 0u64..5)), 1..20)) {
            let links: Vec<_> = links.into_iter().filter(|((a, b), _)| a != b).map(|((a, b), (d, e))| ([a, b], [d, e])).collect();
            let mut cost = vec![vec![None::<(u64, usize)>; 8]; 8];
            for (n, row) in cost.iter_mut().enumerate() {
                row[n] = Some((0, 0));
            }
            for ([a, b], [d, e]) in &links {
                for (x, y, w) in [(*a, *b, *d), (*b, *a, *e)] {
                    cost[x][y] = Some(cost[x][y].map_or((w, 1), |c| c.min((w, 1))));
                }
            }
            for k in 0..8 {
                for i in 0..8 {
                    for j in 0..8 {
                        if let (Some((d, h)), Some((e, g))) = (cost[i][k], cost[k][j]) {
                            let new = (d + e, h + g);
                            cost[i][j] = Some(cost[i][j].map_or(new, |c| c.min(new)));
                        }
                    }
                }
            }
            let mut graph = Graph::new(8, &links);
            for (i, row) in cost.iter().enumerate() {
                for (j, expected) in row.iter().enumerate() {
                    let found = graph.path(i, j);
                    let found = found.map(|p| (p.iter().map(|d| graph.delays[*d]).sum::<u64>(), p.len()));
                    prop_assert_eq!(found, *expected);
                }
            }
        }
    }
}
