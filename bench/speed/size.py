"""Growth with the size of the network: time per packet-hop, that is, per packet sent by a link, of
the networks that bench/graphs.py writes.

Every full link has the same packets under way (24, and 24 acknowledgements) and every run about
five million packet-hops. Three ways to grow:

chain              All flows cross all links. The endpoints' work is spread over more hops the
                   longer the chain, so that the raw figure falls; judged is
                   what each link more than one costs per packet-hop. The simulator knows that such
links are fed by one other only. chain with cross   Three of four flows on each link use that link
alone, and no link is fed by its predecessor only. The endpoints' share is nearly the
                   same at all lengths, so the raw figure is judged. fat-tree, random   A thousand
links, 144 and 1000 flows; judged against the longest chain with cross traffic.
"""

import statistics
import tempfile
from pathlib import Path

import graphs
from peers import Ours

from speed.ours import Run, Settings, median_range, once, start_up
from speed.report import Report

LENGTHS = [1, 2, 4, 8, 16, 32, 64]
CROSS = 3
NEEDED_RATIO = 1.3


def measure(ours: Ours, settings: Settings, report: Report) -> None:
    report.section(
        "Growth with size: links of 1 Gbit/s and 0.2 ms, XCP, four flows on each link of a chain",
        f"Nanoseconds per packet-hop, medians of {settings.runs}, taken in turn; start-up and"
        " reporting subtracted and shown.",
    )
    lengths = LENGTHS if not settings.quick else [1, 4, 16]
    networks = {f"chain of {links}": graphs.chain(links) for links in lengths}
    networks |= {f"chain of {links} with cross": graphs.chain(links, CROSS) for links in lengths}
    networks |= {
        "fat-tree, 1000 links": graphs.fat_tree(12),
        "random graph, 1000 links": graphs.random_graph(400, 1000),
    }
    costs = timed(ours, settings, report, networks)

    one_link = costs["chain of 1"]
    judge_constant(
        report,
        "chains, a link more",
        [
            beyond_the_first(one_link, costs[f"chain of {links}"], links)
            for links in lengths
            if links > 1
        ],
    )
    judge_constant(
        report,
        "chains with cross traffic",
        [costs[f"chain of {links} with cross"] for links in lengths],
    )
    chain = costs[f"chain of {lengths[-1]} with cross"]
    for name in list(networks)[-2:]:
        ratio = max(costs[name] / chain, chain / costs[name])
        report.judge(
            name,
            ratio <= NEEDED_RATIO,
            f"{costs[name]:.0f} ns/hop, {ratio:.2f} apart from the chain of {lengths[-1]}'s"
            f" {chain:.0f}, at most {NEEDED_RATIO:g}",
        )


def timed(
    ours: Ours, settings: Settings, report: Report, networks: dict[str, graphs.Scenario]
) -> dict[str, float]:
    """Median nanoseconds per packet-hop by name; prints the table."""
    with tempfile.TemporaryDirectory(prefix="xcpnet-bench-") as directory:
        paths = {name: Path(directory) / f"{number}.toml" for number, name in enumerate(networks)}
        for name, path in paths.items():
            path.write_text(networks[name].text())
        idle = {name: start_up(ours, path) for name, path in paths.items()}
        runs: dict[str, list[Run]] = {name: [] for name in networks}
        for _ in range(settings.runs):
            for name, path in paths.items():
                runs[name].append(once(ours, path))
    report.line(
        f"{'network':24} {'links':>5} {'packet-hops':>11} {'ns/hop':>7} {'range':>13}"
        f" {'beyond the first':>16} {'start-up':>9} {'util':>6}"
    )
    costs = {}
    for name, samples in runs.items():
        hops, links = samples[0].packet_hops(), networks[name].links
        values = [(run.wall_s - idle[name]) / hops * 1e9 for run in samples]
        costs[name] = statistics.median(values)
        _, between = median_range(values, "{:.1f}")
        plain = name.startswith("chain") and "cross" not in name and links > 1
        beyond = f"{beyond_the_first(costs['chain of 1'], costs[name], links):.1f}" if plain else ""
        used = max(link["utilisation"] for link in samples[0].summary["links"].values())
        report.line(
            f"{name:24} {links:5} {hops:11} {costs[name]:7.1f} {between:>13} {beyond:>16}"
            f" {idle[name]:7.3f} s {used:6.3f}"
        )
    return costs


def beyond_the_first(one_link: float, cost: float, links: int) -> float:
    """What a packet-hop costs on the links after the first, on which the endpoints' work is
    charged.
    """
    return (cost * links - one_link) / (links - 1)


def judge_constant(report: Report, what: str, costs: list[float]) -> None:
    ratio = max(costs) / min(costs)
    report.judge(
        what,
        ratio <= NEEDED_RATIO,
        f"{min(costs):.1f} to {max(costs):.1f} ns/hop, {ratio:.2f} apart, at most {NEEDED_RATIO:g}",
    )
