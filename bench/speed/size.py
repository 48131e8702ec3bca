"""Growth with the size of the network: time per packet-hop, that is, per packet sent by a link, of the networks that bench/graphs.py writes.

Every full link has the same packets under way (24, and 24 acknowledgements) and every run about five million packet-hops. Three ways to grow:

chain              All flows cross all links. The endpoints' work is spread over more hops the longer the chain, so that the raw figure falls; judged is
                   what each link more than one costs per packet-hop. The simulator knows that such links are fed by one other only.
chain with cross   Three of four flows on each link use that link alone, and no link is fed by its predecessor only. The endpoints' share is nearly the
                   same at all lengths, so the raw figure is judged.
fat-tree, random   A thousand links, 144 and 1000 flows; judged against the longest chain with cross traffic.
"""

import statistics
import tempfile
from pathlib import Path

import graphs
from speed.ours import median_range, once, start_up

LENGTHS = [1, 2, 4, 8, 16, 32, 64]
CROSS = 3
NEEDED_RATIO = 1.3


def measure(ours, settings, report):
    report.section(
        "Growth with size: links of 1 Gbit/s and 0.2 ms, XCP, four flows on each link of a chain",
        f"Nanoseconds per packet-hop, medians of {settings.runs}; start-up and reporting subtracted and shown.",
    )
    report.line(f"{'network':24} {'links':>5} {'packet-hops':>11} {'ns/hop':>7} {'range':>13} {'beyond the first':>16} {'start-up':>9} {'util':>6}")
    lengths = LENGTHS if not settings.quick else [1, 4, 16]
    with tempfile.TemporaryDirectory(prefix="xcpnet-bench-") as directory:
        def network(name, scenario, one_link=None):
            path = Path(directory) / "network.toml"
            path.write_text(scenario.text())
            return timed(ours, settings, report, name, path, scenario.links, one_link)

        plain, marginal = {}, []
        for links in lengths:
            plain[links] = network(f"chain of {links}", graphs.chain(links), plain.get(1))
            if links > 1:
                marginal.append(beyond_the_first(plain[1], plain[links], links))
        judge_constant(report, "chains, a link more", marginal)

        crossed = [network(f"chain of {links} with cross", graphs.chain(links, CROSS)) for links in lengths]
        judge_constant(report, "chains with cross traffic", crossed)

        for name, scenario in [("fat-tree", graphs.fat_tree(12)), ("random graph", graphs.random_graph(400, 1000))]:
            cost = network(f"{name}, 1000 links", scenario)
            ratio = max(cost / crossed[-1], crossed[-1] / cost)
            report.judge(f"{name} of 1000 links", ratio <= NEEDED_RATIO, f"{cost:.0f} ns/hop, {ratio:.2f} apart from a chain of {lengths[-1]}'s {crossed[-1]:.0f}, at most {NEEDED_RATIO:g}")


def timed(ours, settings, report, name, path, links, one_link):
    idle = start_up(ours, path)
    runs = [once(ours, path) for _ in range(settings.runs)]
    hops = runs[0].packet_hops()
    costs = [(run.wall_s - idle) / hops * 1e9 for run in runs]
    cost = statistics.median(costs)
    _, between = median_range(costs, "{:.1f}")
    used = max(link["utilisation"] for link in runs[0].summary["links"].values())
    beyond = f"{beyond_the_first(one_link, cost, links):.1f}" if one_link is not None else ""
    report.line(f"{name:24} {links:5} {hops:11} {cost:7.1f} {between:>13} {beyond:>16} {idle:7.3f} s {used:6.3f}")
    return cost


def beyond_the_first(one_link, cost, links):
    """What a packet-hop costs on the links after the first, on which the endpoints' work is charged."""
    return (cost * links - one_link) / (links - 1)


def judge_constant(report, what, costs):
    ratio = max(costs) / min(costs)
    report.judge(what, ratio <= NEEDED_RATIO, f"{min(costs):.1f} to {max(costs):.1f} ns/hop, {ratio:.2f} apart, at most {NEEDED_RATIO:g}")
