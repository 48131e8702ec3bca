"""The parts of bench/pep/run in which several transfers share the link: who has how much of it."""

import contextlib
import json
import statistics
import subprocess
import tempfile
import time

from measures import backlog, curl, flows, link_bytes
from network import QUIET, RATE, SERVER, SIZES, Net, network, no_trunk, sh, ways
from table import row


def together() -> None:
    print(
        "\nfour downloads and one upload at once\n\n| quantity | value | wanted |"
        " |\n|---|---|---|---|"
    )
    with network() as net:
        for way in ways(net):
            alone = statistics.median(curl(net, "100kB")[0] for _ in range(3))
            server = net.start("server", "iperf3", "-s", "-1", **QUIET)
            time.sleep(0.5)
            up = net.start(
                "client", "iperf3", "-c", SERVER, "-t", "75", "-J", stdout=subprocess.PIPE
            )
            downs = [
                net.start(
                    "client",
                    "curl",
                    "-s",
                    "-o",
                    "/dev/null",
                    "-m",
                    "75",
                    f"http://{SERVER}/100MB",
                    "-w",
                    "%{size_download}",
                    stdout=subprocess.PIPE,
                )
                for _ in range(4)
            ]
            time.sleep(25)
            queue: list[int] = []
            before, begin = flows(net), time.monotonic()
            for _ in range(200):
                queue.append(backlog(net))
                time.sleep(0.1)
            after, took = flows(net), time.monotonic() - begin
            beside = statistics.median(curl(net, "100kB")[0] for _ in range(3))
            shares = sorted(
                ((after[k] - before[k]) * 8 / took for k in before if k in after), reverse=True
            )[:4]
            jain = (
                sum(shares) ** 2 / (len(shares) * sum(s * s for s in shares))
                if shares and sum(shares)
                else 0
            )
            standing = statistics.median(queue) * 8 / RATE * 1000
            for process in downs:
                process.wait()
            with contextlib.suppress(subprocess.TimeoutExpired):
                report = json.loads(up.communicate(timeout=20)[0] or "{}")
            upload = report.get("end", {}).get("sum_received", {}).get("bits_per_second", 0) / 1e6
            server.terminate()
            judge = way == "pep"
            said = ", ".join(f"{s / 1e6:.2f}" for s in shares)
            row(
                f"{way}: Jain's index of the downloads",
                f"{jain:.4f} ({said} Mbit/s)",
                ".99",
                jain >= 0.99 if judge else None,
            )
            row(
                f"{way}: standing queue (median)",
                f"{standing:.0f} ms",
                "20 ms",
                standing < 20 if judge else None,
                f"least {min(queue) * 8 / RATE * 1000:.0f} ms",
            )
            row(
                f"{way}: 100 kB beside them, alone",
                f"{beside:.2f} s, {alone:.2f} s",
                "at most 1.5 times",
                beside / alone <= 1.5 if judge else None,
                f"{beside / alone:.2f} times",
            )
            row(f"{way}: the upload", f"{upload:.2f} Mbit/s", "", None)


LAWS = ("p-xcp", "robust")
# The modem of the part laws, bit/s: half of what the gateways are told.
MODEM = RATE / 2
# Who waits for 100 kB in it for so long, in seconds, gives up, and counts as having had to wait so
# long.
LAWS_LIMIT = 30.0


def four_downloads(net: Net) -> tuple[float, float, float]:
    """Sum of their rates in Mbit/s, Jain's index, and how long 100 kB take beside them in seconds,
    the median of three."""
    downs = [
        net.start("client", "curl", "-s", "-m", "300", f"http://{SERVER}/100MB", "-o", "/dev/null")
        for _ in range(4)
    ]
    time.sleep(20)
    before, begin = flows(net), time.monotonic()
    time.sleep(15)
    after, took = flows(net), time.monotonic() - begin
    rates = [(after[k] - before[k]) * 8 / took for k in before if k in after]
    beside = statistics.median(curl(net, "100kB", LAWS_LIMIT)[0] for _ in range(3))
    for process in downs:
        process.terminate()
        process.wait()
    jain = sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))
    return sum(rates) / 1e6, jain, beside


def laws() -> None:
    """The laws robust and p-xcp, each with its senders."""
    print(
        f"\n20 Mbit/s, 600 ms: pep up --law {LAWS[0]}, and --law {LAWS[1]}\n\n| quantity |"
        f" {', '.join(LAWS)} | wanted | |\n|---|---|---|---|"
    )

    def both(what: str, values: list[str]) -> None:
        row(what, ", ".join(values), "", None)

    alone: dict[str, list[str]] = {name: [] for name in list(SIZES)[:3]}
    said: list[list[tuple[float, float, float]]] = []
    half: list[list[tuple[float, float, float]]] = []
    lossy = []
    for law in LAWS:
        with network() as net:
            net.up("--law", law)
            for name, told in alone.items():
                times = []
                for _ in range(5):
                    time.sleep(2)
                    times.append(curl(net, name.replace(" ", ""))[0])
                told.append(f"{statistics.median(times):.2f} ({max(times):.2f})")
            said.append([four_downloads(net) for _ in range(3)])
            net.rewire(modem=f"{MODEM:.0f}", **{"modem-packets": 1000})
            half.append([four_downloads(net) for _ in range(3)])
            net.rewire(loss=0.01)
            seconds, size, _, _ = curl(net, "100MB", 60)
            lossy.append(f"{size * 8 / seconds / 1e6:.2f}")
            net.down()
    for name, values in alone.items():
        both(f"{name} alone, median (worst of five), s", values)
    both("one download, 1 % of the packets lost, Mbit/s", lossy)
    for runs, what in (
        (said, "a link as said"),
        (half, "a link of half of that, a queue of 1000 packets"),
    ):
        for at, (of, worst) in enumerate(
            (
                ("four downloads, Mbit/s", min),
                ("Jain's index", min),
                ("100 kB beside them, s", max),
            )
        ):
            figures = [[run[at] for run in of_law] for of_law in runs]
            both(
                f"{what}: {of}, median (worst of three)",
                [f"{statistics.median(v):.3g} ({worst(v):.3g})" for v in figures],
            )


# Downloads without an end by so many connections from each address: bytes of each address in each
# second.
SUBSCRIBERS = """
import collections, json, resource, selectors, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (4000, 4000))
server, seconds, counts = sys.argv[1], int(sys.argv[2]), [word.split('=') for word in sys.argv[3:]]
poll, begin = selectors.DefaultSelector(), time.monotonic()
got = collections.defaultdict(lambda: [0] * (seconds + 1))
def ask(address):
    s = socket.socket(); s.bind((address, 0)); s.connect((server, 80))
    s.sendall(b'GET /100MB HTTP/1.0\\r\\n\\r\\n')
    poll.register(s, selectors.EVENT_READ, address)
for address, count in counts:
    for _ in range(int(count)): ask(address)
while time.monotonic() - begin < seconds:
    for key, _ in poll.select(1):
        data = key.fileobj.recv(65536)
        got[key.data][min(seconds, int(time.monotonic() - begin))] += len(data)
        if not data:
            poll.unregister(key.fileobj); key.fileobj.close(); ask(key.data)
print(json.dumps(got))
"""


def shares() -> None:
    """An address with fifty connections beside one with one."""
    print(
        "\n20 Mbit/s, 600 ms: 50 downloads to one address and one to another, from their beginning"
        " on\n\n| way | bytes of the 50, in multiples of the other's | wanted |"
        " |\n|---|---|---|---|"
    )
    seconds, settles = 90, 30
    many, alone = "10.1.0.2", "10.1.0.3"
    with network() as net, tempfile.TemporaryDirectory() as directory:
        sh("ip", "-n", net.ns("client"), "addr", "add", f"{alone}/24", "dev", "c0")
        for way, more, trunk in (
            ("by connection", (), None),
            ("by address", ("--share", "address"), None),
            ("by address and the trunk", ("--share", "address"), True),
        ):
            net.up(*more, trunk=net.trunk(directory) if trunk else no_trunk)
            if trunk:
                net.warm()
            got = json.loads(
                net.exec(
                    "client",
                    "python3",
                    "-c",
                    SUBSCRIBERS,
                    SERVER,
                    seconds,
                    f"{many}=50",
                    f"{alone}=1",
                ).stdout
            )

            def ratio(first: int, last: int, got: dict[str, list[int]] = got) -> float:
                return sum(got[many][first:last]) / max(1, sum(got[alone][first:last]))

            fair = ratio(settles, seconds)
            carried = (
                sum(sum(got[address][settles:seconds]) for address in (many, alone))
                * 8
                / (seconds - settles)
                / 1e6
            )
            row(
                way,
                f"{fair:.2f}",
                "within 10 %" if more else "",
                1 / 1.1 <= fair <= 1.1 if more else None,
                f"after {settles} s; in the first 10 s {ratio(0, 10):.2f}, from then to {settles} s"
                f" {ratio(10, settles):.2f}; goodput {carried:.2f} Mbit/s",
            )
            net.down()


def blockage() -> None:
    print(
        "\na blockage of 10 s: time from its end until the link was 90 % full for 0.2 s (which are"
        " in it)\n\n| way | value | wanted | |\n|---|---|---|---|"
    )
    with network() as net:
        for way in ways(net):
            net.rewire(blackout="20..30")
            start = time.monotonic()
            down = net.start(
                "client", "curl", "-s", "-o", "/dev/null", "-m", "60", f"http://{SERVER}/100MB"
            )
            samples: list[tuple[float, int]] = []
            while down.poll() is None and time.monotonic() - start < 60:
                samples.append((time.monotonic() - start, link_bytes(net)))
                time.sleep(0.02)
            down.terminate()
            end = 30.0
            full: float | None = None
            first: float | None = None
            for at, (when, count) in enumerate(samples):
                if when < end + 0.3:
                    continue
                then = next((s for s in samples[:at] if s[0] >= when - 0.2), None)
                if then and first is None and count - then[1] > 2000:
                    first = when - end
                if (
                    then
                    and when > then[0]
                    and (count - then[1]) * 8 / (when - then[0]) >= 0.9 * RATE
                ):
                    full = when - end
                    break
            row(
                way,
                f"{full:.2f} s" if full else "not within 30 s",
                "1.5 s",
                (full or 99) <= 1.5 if way == "pep" else None,
                f"first data after {first:.2f} s" if first else "",
            )
            net.rewire()
