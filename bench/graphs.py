#!/usr/bin/env python3
"""Writes scenarios of networks of any size: chains, fat-trees, random graphs. For bench/run, and to
look at:

usage: bench/graphs.py chain LINKS [--cross N] | fat-tree K | random NODES LINKS     (TOML on
stdout)

All links are alike: 1 Gbit/s, 0.2 ms, an XCP queue, so that a full one has the same 24 packets and
24 acknowledgements under way whatever the network.
"""

import argparse
import random
from collections.abc import Sequence

RATE_BPS = 1e9
DELAY_MS = 0.2
PACKET = 1050
PACKETS_UNDER_WAY = RATE_BPS / (8 * PACKET) * DELAY_MS / 1000  # per direction of a full link


class Scenario:
    """Links and flows, as TOML."""

    def __init__(self, title: str, duration_s: float, queue: str = "xcp") -> None:
        self.lines = [f'title = "{title}"', f'duration = "{duration_s:g}s"', 'sample = "off"']
        self.queue = f'{{ kind = "{queue}", limit = "10000p" }}'
        self.links = 0

    def link(self, a: str, b: str) -> None:
        self.links += 1
        self.lines += [
            "",
            "[[link]]",
            f'between = ["{a}", "{b}"]',
            f'rate = "{RATE_BPS:.0f}bit"',
            f'delay = "{DELAY_MS:g}ms"',
            f"queue = {self.queue}",
        ]

    def flow(
        self,
        name: str,
        source: str,
        sink: str,
        window: float = 10,
        count: int | None = None,
        via: Sequence[str] = (),
    ) -> None:
        self.lines += [
            "",
            "[[flow]]",
            f'name = "{name}"',
            f'from = "{source}"',
            f'to = "{sink}"',
            'congestion = "xcp"',
            f"packet = {PACKET}",
        ]
        self.lines += [
            "paced = false",
            "delayed-ack = false",
            "handshake = false",
            f"initial-window = {max(2, round(window))}",
        ]
        self.lines += [f"count = {count}"] if count is not None else []
        self.lines += ["via = [" + ", ".join(f'"{node}"' for node in via) + "]"] if via else []

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def chain(
    links: int, cross: int = 0, duration_s: float | None = None, queue: str = "xcp", flows: int = 4
) -> Scenario:
    """`flows` flows on each link: all of them over the whole chain, or with `cross` that many of
    one link only and the others over all.
    """
    scenario = Scenario(f"Chain of {links} links", duration_s or 20 / links, queue)
    for i in range(links):
        scenario.link(f"n{i}", f"n{i + 1}")
    share = 2 * PACKETS_UNDER_WAY / flows
    scenario.flow("long", "n0", f"n{links}", share * links, count=flows - cross)
    for i in range(links if cross else 0):
        scenario.flow(f"cross{i}", f"n{i}", f"n{i + 1}", share, count=cross)
    return scenario


def fat_tree(k: int, hosts_per_edge: int = 2, duration_s: float = 0.05, seed: int = 1) -> Scenario:
    """A fat-tree of k pods (Al-Fares et al. 2008) with fewer hosts than it could take; each host
    sends to one of another pod, over a core drawn at random.
    """
    scenario = Scenario(f"Fat-tree of {k} pods", duration_s)
    draw = random.Random(seed)
    half = k // 2
    for pod in range(k):
        for edge in range(half):
            for host in range(hosts_per_edge):
                scenario.link(f"h{pod}-{edge}-{host}", f"e{pod}-{edge}")
            for aggregate in range(half):
                scenario.link(f"e{pod}-{edge}", f"a{pod}-{aggregate}")
        for aggregate in range(half):
            for core in range(half):
                scenario.link(f"a{pod}-{aggregate}", f"c{aggregate}-{core}")
    pods = list(range(k))
    number = 0
    for edge in range(half):
        for host in range(hosts_per_edge):
            shift = draw.randrange(1, k)
            for pod in pods:
                other = (pod + shift) % k
                aggregate, core = draw.randrange(half), draw.randrange(half)
                via = [f"a{pod}-{aggregate}", f"c{aggregate}-{core}", f"a{other}-{aggregate}"]
                number += 1
                scenario.flow(
                    f"f{number}",
                    f"h{pod}-{edge}-{host}",
                    f"h{other}-{edge}-{host}",
                    window=4 * PACKETS_UNDER_WAY,
                    via=via,
                )
    return scenario


def random_graph(
    nodes: int, links: int, flows: int = 1000, duration_s: float = 0.05, seed: int = 1
) -> Scenario:
    """A random tree and random links besides; flows between random nodes."""
    scenario = Scenario(f"Random graph of {nodes} nodes and {links} links", duration_s)
    draw = random.Random(seed)
    joined = {(draw.randrange(b), b) for b in range(1, nodes)}
    while len(joined) < links:
        a, b = sorted(draw.sample(range(nodes), 2))
        joined.add((a, b))
    for a, b in sorted(joined):
        scenario.link(f"n{a}", f"n{b}")
    for number in range(flows):
        a, b = draw.sample(range(nodes), 2)
        scenario.flow(f"f{number}", f"n{a}", f"n{b}")
    return scenario


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    kind = kinds.add_parser("chain")
    kind.add_argument("links", type=int)
    kind.add_argument(
        "--cross",
        type=int,
        default=0,
        help="of the four flows on each link, how many use this link only",
    )
    kinds.add_parser("fat-tree").add_argument("k", type=int)
    kind = kinds.add_parser("random")
    kind.add_argument("nodes", type=int)
    kind.add_argument("links", type=int)
    arguments = parser.parse_args()
    match arguments.kind:
        case "chain":
            scenario = chain(arguments.links, arguments.cross)
        case "fat-tree":
            scenario = fat_tree(arguments.k)
        case _:
            scenario = random_graph(arguments.nodes, arguments.links)
    print(scenario.text(), end="")


if __name__ == "__main__":
    main()
