"""The parts of bench/pep/run that load the gateways themselves: connections, processors, memory,
beside HAProxy, and every byte compared.
"""

import contextlib
import json
import os
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator

import haproxies
import serving
from downloads import WARM
from measures import connections_per_second, cpu, curl, iperf3, memory
from network import QUIET, SERVER, Net, network, sh
from table import options, row

HERE = os.path.dirname(os.path.abspath(__file__))


def many() -> None:
    print(
        "\nmany connections at once: each downloads 100 kB\n\n| connections | value | wanted |"
        " |\n|---|---|---|---|"
    )
    with network() as net:
        net.shape(False)
        net.up("--workers", "1", "--connections", "8000")
        for count in (1000, 5000):
            pid = net.show("near")["pid"]
            rss = memory(pid)
            done = net.exec(
                "client", "python3", "-c", CROWD, SERVER, count, check=False, timeout=900
            )
            words = done.stdout.split()
            if len(words) != 4:
                row(str(count), done.stderr[-200:], "nothing refused", False)
                continue
            refused, lost, peak_at, seconds = (
                int(words[0]),
                int(words[1]),
                int(words[2]),
                float(words[3]),
            )
            grown = max(0, memory(pid, "VmHWM") - rss) / count
            row(
                str(count),
                f"{refused} refused, {lost} incomplete, {seconds:.0f} s, {grown:.1f} kB each",
                "none refused or lost, under 64 kB",
                refused == 0 and lost == 0 and grown < 64,
                f"{peak_at} open at once",
            )


CROWD = """
import resource, selectors, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
server, count = sys.argv[1], int(sys.argv[2])
request = b'GET /100kB HTTP/1.0\\r\\n\\r\\n'
poll, begin = selectors.DefaultSelector(), time.monotonic()
refused, lost, left, opened, peak = 0, 0, 0, [], 0
for number in range(count):
    s = socket.socket(); s.setblocking(False)
    s.connect_ex((server, 80))
    poll.register(s, selectors.EVENT_WRITE); opened.append(s); left += 1
    if number % 100 == 99: time.sleep(0.02)
got, waiting = {}, set()
while len(got) + refused < count and time.monotonic() - begin < 240:
    for key, _ in poll.select(1):
        if key.events == selectors.EVENT_WRITE:
            poll.unregister(key.fileobj)
            if key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR): refused += 1
            else: got[key.fileobj] = 0
peak = len(got)
for s in got:
    s.send(request); poll.register(s, selectors.EVENT_READ)
open_ = len(got)
while open_ and time.monotonic() - begin < 800:
    for key, _ in poll.select(1):
        try: data = key.fileobj.recv(65536)
        except OSError: data = b''
        if data: got[key.fileobj] += len(data)
        else:
            poll.unregister(key.fileobj); open_ -= 1
            lost += got[key.fileobj] < 100000
print(refused, lost + open_, peak, time.monotonic() - begin)
"""


@contextlib.contextmanager
def gateways(net: Net, way: str) -> Iterator[tuple[str, list[int]]]:
    """Two proxies of a kind at the gateways; yields where the client asks, and the processes."""
    if way == "pep":
        net.up("--workers", "2", *options.pep_options, rate=False)
        try:
            yield SERVER, [net.show(name)["pid"] for name in ("near", "far")]
        finally:
            net.down()
    else:
        with haproxies.running(net, SERVER, keeps_address=way == KEEPS) as found:
            yield found


# HAProxy that does what the proxy does by itself: the server sees the client's address and port.
KEEPS = "haproxy that keeps the client's address"


def haproxy() -> None:
    print(
        "\nno delay, no shaper: two HAProxy (splice-auto, 2 threads) in the same places\n\n|"
        " quantity | HAProxy, pep | wanted | |\n|---|---|---|---|"
    )
    results: dict[tuple[str, str], list[float]] = {}

    def found(way: str, what: str, value: float) -> None:
        results.setdefault((way, what), []).append(value)

    with network(delay=False) as net:
        server = net.start("server", "iperf3", "-s", **QUIET)
        for _ in range(options.repeat):
            for way in ("haproxy", "pep", KEEPS):
                with gateways(net, way) as (target, pids):
                    for streams in (1, 4) if way != KEEPS else ():
                        before = cpu(pids)
                        rate, gbit = iperf3(net, target, streams)
                        found(way, f"throughput, {streams} at once", rate)
                        per_gbit = (cpu(pids) - before) / gbit
                        found(way, f"CPU seconds per Gbit, {streams} at once", per_gbit)
                    found(way, "connections per second", connections_per_second(net, target))
        server.terminate()
    for what in dict.fromkeys(name for _, name in results):
        theirs, ours = (statistics.median(results[way, what]) for way in ("haproxy", "pep"))
        fewer = what.startswith("CPU")
        reached = ours <= theirs if fewer else ours >= theirs
        row(
            what,
            f"{theirs:.3g}, {ours:.3g}",
            "no higher" if fewer else "no lower",
            reached,
            f"{ours / theirs:.2f} times",
        )
    what = "connections per second"
    theirs, ours = (statistics.median(results[way, what]) for way in (KEEPS, "pep"))
    times = f"{ours / theirs:.2f} times" if theirs else "it made none"
    row(f"{what}, {KEEPS}", f"{theirs:.3g}, {ours:.3g}", "", None, times)


def sealed() -> None:
    """What it costs to encrypt the trunk."""
    print(
        "\nby the trunk, in the clear and encrypted\n\n| quantity | in the clear, encrypted |"
        " wanted | |\n|---|---|---|---|"
    )
    ways = (("clear", ()), ("sealed", ("--trunk-encrypt",)))
    results: dict[tuple[str, str], list[float]] = {}
    with network() as net, tempfile.TemporaryDirectory() as directory:
        for way, more in ways:
            net.up(trunk=net.trunk(directory, *more))
            for name in WARM:
                for _ in range(3):
                    net.warm()
                    time.sleep(2)
                    results.setdefault((way, f"20 Mbit/s, 600 ms: {name}, seconds"), []).append(
                        curl(net, name.replace(" ", ""))[0]
                    )
            net.down()
    with network(delay=False) as net, tempfile.TemporaryDirectory() as directory:
        server = net.start("server", "iperf3", "-s", **QUIET)
        for _ in range(options.repeat):
            for way, more in ways:
                net.up("--workers", "2", rate=False, trunk=net.trunk(directory, *more))
                net.warm()
                pids = [net.show(name)["pid"] for name in ("near", "far")]
                for streams in (1, 4):
                    before = cpu(pids)
                    rate, gbit = iperf3(net, SERVER, streams)
                    results.setdefault((way, f"no delay: Gbit/s, {streams} at once"), []).append(
                        rate
                    )
                    results.setdefault(
                        (way, f"CPU seconds per Gbit, {streams} at once"), []
                    ).append((cpu(pids) - before) / gbit)
                before = cpu(pids)
                results.setdefault((way, "connections per second"), []).append(
                    connections_per_second(net, SERVER, 4000, 20)
                )
                results.setdefault((way, "CPU ms per connection"), []).append(
                    (cpu(pids) - before) / 4
                )
                net.down()
        server.terminate()
    for what in dict.fromkeys(name for _, name in results):
        clear, encrypted = (statistics.median(results[way, what]) for way, _ in ways)
        row(
            what,
            f"{clear:.3g}, {encrypted:.3g}",
            "",
            None,
            f"{encrypted / max(clear, 1e-9):.2f} times",
        )


def exact() -> None:
    """Random data in connections of random sizes, both ways, with loss, reordering, resets, and a
    proxy restarted in the middle.
    """
    total, program = options.bytes, os.path.join(HERE, "exact.py")
    print(
        f"\n{total / 1e9:g} GB of random data, both ways, with loss, reordering, resets, and"
        " proxies restarted in the middle\n\n| quantity | value | wanted | |\n|---|---|---|---|"
    )
    checked = sh("python3", program, "check", check=False)
    row(
        "the referee sees what is done wrong on purpose",
        f"{len(checked.stdout.splitlines())} kinds",
        "all",
        checked.returncode == 0,
    )
    ended, killed, carried = 0, 0, 0
    troubles: list[str] = []
    with network() as net:
        net.rewire(delay="10ms", loss=0.0005, reorder=0.01, **{"reorder-delay": "5ms"})
        net.up("--workers", "2", rate=False)
        server = net.start("server", "python3", program, "serve", "7000", stdout=subprocess.PIPE)
        serving.line_of(server)
        # A little more: what is cut is not had.
        client = net.start(
            "client",
            "python3",
            program,
            "ask",
            SERVER,
            "7000",
            str(total * 1.05),
            stdout=subprocess.PIPE,
        )
        stopped = threading.Event()

        def restart() -> None:
            nonlocal ended, killed, carried
            while not stopped.wait(2):
                number = ended + killed
                name = ("near", "far")[number % 2]
                shown = net.show(name)
                carried += len(shown["connections"])
                if number % 3 == 2:
                    killed += 1
                    os.kill(shown["pid"], signal.SIGKILL)
                    # For so long connections pass without it.
                    time.sleep(0.5)
                else:
                    ended += 1
                sh(options.xcpnet, "pep", "down", "--now", "--netns", net.ns(name), check=False)
                done = sh(
                    options.xcpnet,
                    "pep",
                    "up",
                    "--netns",
                    net.ns(name),
                    "--wan",
                    "wan",
                    "--lan",
                    "lan",
                    "--drain",
                    "1s",
                    "--workers",
                    "2",
                    check=False,
                )
                if done.returncode:
                    troubles.append(done.stderr.strip())

        thread = threading.Thread(target=restart)
        thread.start()
        here = json.loads(client.communicate()[0] or "{}")
        stopped.set()
        thread.join()
        # The ip command is the process; what it has become takes the signal.
        server.terminate()
        there = json.loads(server.communicate()[0] or "{}")
        net.line.terminate()
        frames = net.line.communicate()[0].strip().replace("\n", " ")
    both = {
        what: here.get(what, 0) + there.get(what, 0)
        for what in ("bytes", "wrong", "truncated", "silent", "open")
    }
    good = (
        bool(here and there)
        and both["bytes"] >= total
        and not any(both[what] for what in ("wrong", "truncated", "silent", "open"))
    )
    # Without a proxy everything is right, too.
    row(
        "proxies stopped, proxies killed, connections that were open then",
        f"{ended}, {killed}, {carried}",
        "some of each",
        bool(ended and killed and carried) and not troubles,
        "; ".join(troubles),
    )
    row(
        "bytes delivered in connections",
        f"{both['bytes'] / 1e9:.2f} GB in {here.get('connections')}",
        "every one a prefix, whole unless reset",
        good,
        f"{both['wrong']} wrong, {both['truncated']} ended early without a reset,"
        f" {both['silent'] + both['open']} went silent; streams reset: {here.get('reset')} down,"
        f" {there.get('reset')} up; {here.get('refused')} not opened; frames: {frames}",
    )


def serve() -> None:
    print(
        "\n`xcpnet serve` on a gateway with 1000 connections, one page open\n\n| | value | wanted |"
        " |\n|---|---|---|---|"
    )
    with network() as net:
        net.shape(False)
        net.up("--workers", "1", "--connections", "2000")
        found = serving.measure(net, options.xcpnet, 1000)
        row(
            "processors",
            f"{100 * found['share']:.2f} % of one",
            "below 2 %",
            min(found["connections"], found["told"]) >= 1000 and found["share"] < 0.02,
            f"{found['told']} connections shown, {found['looks']:.2f} readings a second,"
            f" {found['memory']:.0f} MB",
        )
        row(
            "time until the page has arrived",
            f"{1000 * found['median']:.0f} ms",
            "",
            None,
            f"{1000 * found['worst']:.0f} ms the worst",
        )
