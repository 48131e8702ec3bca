"""The parts of bench/pep/run in which one client loads something: how soon it is there."""

import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import serving
from measures import curl, kernel_bytes, link_bytes, memory
from network import (
    OBJECT_BYTES,
    OBJECTS,
    QUIET,
    RATE,
    RTT,
    SERVER,
    SIZES,
    Net,
    network,
    no_trunk,
    ways,
)
from table import row


def sizes() -> None:
    print(
        "\n20 Mbit/s, 600 ms, no loss: downloads with curl, seconds\n\n| download | cubic, bbr, pep"
        " | wanted | |\n|---|---|---|---|"
    )
    times: dict[tuple[str, str], float] = {}
    crossed = 0
    with network() as net:
        for way in ways(net):
            for name, size in SIZES.items():
                repeat = 1 if size > 5e6 else 3
                before = link_bytes(net)
                times[way, name] = statistics.median(
                    curl(net, name.replace(" ", ""))[0] for _ in range(repeat)
                )
                crossed = link_bytes(net) - before
    for name, size in SIZES.items():
        cubic, bbr, pep = (times[way, name] for way in ("cubic", "bbr", "pep"))
        value = f"{cubic:.2f}, {bbr:.2f}, {pep:.2f}"
        ideal = RTT + size * 8 / RATE
        note = f"{cubic / pep:.2f} times; a full link from the first byte on: {ideal:.2f} s"
        if size >= 1e6:
            row(name, value, "2 times faster than cubic", cubic / pep >= 2, note)
        else:
            row(name, value, "", None, note)
    # The last of all, so `crossed` is its.
    capacity = times["pep", "100 MB"] * RATE / 8
    share, goodput = crossed / capacity, SIZES["100 MB"] / capacity
    row(
        "100 MB: frames that crossed the link",
        f"{share * 100:.1f} % of what it carries",
        "95 %",
        share >= 0.95,
        f"goodput {goodput * 100:.1f} %, the rest are headers",
    )


# Seconds: what a transfer by the trunk may take, and the first one without.
WARM = {"100 kB": (0.75, 1.22), "1 MB": (1.15, 1.70), "10 MB": (5.0, 5.53)}


def warm() -> None:
    """Connections kept open between the gateways."""
    print(
        "\n20 Mbit/s, 600 ms: by connections that were open, and as without them; curl, seconds,"
        " median and worst of five\n\n| download | without a trunk, by the trunk | wanted |"
        " |\n|---|---|---|---|"
    )
    with network() as net, tempfile.TemporaryDirectory() as directory:
        times: dict[tuple[str, str], list[float]] = {}
        for way, trunk in (("first", no_trunk), ("warm", net.trunk(directory))):
            net.up(trunk=trunk)
            for name in WARM:
                times[way, name] = []
                for _ in range(5):
                    if way == "warm":
                        net.warm()
                    # What was lent for the last one is free again.
                    time.sleep(2)
                    times[way, name].append(curl(net, name.replace(" ", ""))[0])
            net.down()
        for name, (least, first) in WARM.items():
            said = [
                f"{statistics.median(times[way, name]):.2f} s (worst {max(times[way, name]):.2f})"
                for way in ("first", "warm")
            ]
            reached = (
                statistics.median(times["warm", name]) <= least
                and statistics.median(times["first", name]) <= first
            )
            ideal = RTT + SIZES[name] * 8 / RATE
            row(
                f"{name} by the trunk",
                ", ".join(said),
                f"{first:.2f} s, {least:.2f} s",
                reached,
                f"a full link from the first byte on: {ideal:.2f} s",
            )
    with network(loss=0.01) as net, tempfile.TemporaryDirectory() as directory:
        net.up(trunk=net.trunk(directory))
        net.warm()
        seconds, size, _, _ = curl(net, "100MB", 90)
        row(
            "100 MB by the trunk, 1 % loss",
            f"{size * 8 / seconds / 1e6:.2f} Mbit/s",
            "17.5 Mbit/s",
            size * 8 / seconds >= 17.5e6,
        )
        # Head-of-line blocking: the same objects by connections of their own, and one after the
        # other in a single one, as streams of it would come. What a lost packet holds up is seen in
        # how long the middle and the last of them take.
        for what, way in (
            ("each by its own connection", "own"),
            ("in turn by one connection", "one"),
        ):
            pages = []
            for _ in range(9):
                net.warm()
                time.sleep(2)
                pages.append(
                    json.loads(net.exec("client", "python3", "-c", PAGE, SERVER, way).stdout)
                )
            half, last = (statistics.median(page[at] for page in pages) for at in (0, 1))
            row(
                f"24 objects of 30 kB, 1 % loss, {what}",
                f"half after {half:.2f} s, all after {last:.2f} s (worst"
                f" {max(p[1] for p in pages):.2f})",
                "",
                None,
            )


# Times at which half and all of the objects have come.
PAGE = """
import json, selectors, socket, sys, time
server, way, count, size = sys.argv[1], sys.argv[2], 24, 30000
begin, poll, ends, got = time.monotonic(), selectors.DefaultSelector(), [], {}
for number in range(count if way == 'own' else 1):
    s = socket.create_connection((server, 80))
    s.sendall(b'GET /%s HTTP/1.0\\r\\n\\r\\n' % (b'30kB' if way == 'own' else b'720kB'))
    got[s] = 0
    poll.register(s, selectors.EVENT_READ)
while got:
    for key, _ in poll.select():
        s = key.fileobj
        data = s.recv(65536)
        before = got[s] // size
        got[s] += len(data)
        ends += [time.monotonic() - begin] * (got[s] // size - before)
        if not data:
            poll.unregister(s)
            del got[s]
ends.sort()
print(json.dumps([ends[count // 2 - 1], ends[count - 1]]))
"""


def browse(net: Net, url: str) -> tuple[float, str]:
    """Seconds until a browser's load event, and the protocol."""
    with tempfile.TemporaryDirectory() as profile:
        done = net.exec(
            "client",
            "timeout",
            "120",
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-extensions",
            "--disable-sync",
            "--disable-background-networking",
            "--disable-component-update",
            "--ignore-certificate-errors",
            f"--user-data-dir={profile}",
            "--dump-dom",
            url,
            check=False,
        )
    found = re.search(r"took ([0-9.]+) by (\S+?)<", done.stdout)
    return (float(found[1]) / 1000, found[2]) if found else (999.0, "nothing")


# Seconds: HTTP/1.1 by six connections takes ten round trips at the least.
PAGES = {
    "HTTP/1.1": (f"http://{SERVER}/page.html", "http/1.1", 6.3),
    "HTTP/2 over TLS": (f"https://{SERVER}/page.html", "h2", 2.4),
}


def browser() -> None:
    print(
        f"\n20 Mbit/s, 600 ms: a page of {OBJECTS} objects of {OBJECT_BYTES / 1000:.0f} kB in"
        " Chromium, seconds until it is loaded, median and worst of three\n\n| protocol | without"
        " (cubic), with the proxy, by the trunk | wanted | |\n|---|---|---|---|"
    )
    lacking = [tool for tool in ("chromium", "openssl") if not shutil.which(tool)]
    if lacking:
        print(f"SKIPPED: missing: {', '.join(lacking)}")
        return
    with network(browser=True) as net, tempfile.TemporaryDirectory() as directory:
        times: dict[tuple[str, str], list[float]] = {}
        for way in ("cubic", "pep", "trunk"):
            if way == "cubic":
                net.congestion(way)
                net.shape()
            else:
                net.shape(False)
                net.up(trunk=net.trunk(directory) if way == "trunk" else no_trunk)
            for name, (url, protocol, _) in PAGES.items():
                for _ in range(3):
                    if way == "trunk":
                        net.warm()
                    time.sleep(2)
                    seconds, spoken = browse(net, url)
                    if spoken != protocol:
                        print(f"{way}: {name}: the browser spoke {spoken}", file=sys.stderr)
                    times.setdefault((way, name), []).append(
                        seconds if spoken == protocol else 999.0
                    )
            net.down()
        for name, (_, _, wanted) in PAGES.items():
            said = [
                f"{statistics.median(times[way, name]):.2f} s (worst {max(times[way, name]):.2f})"
                for way in ("cubic", "pep", "trunk")
            ]
            row(
                name,
                ", ".join(said),
                f"{wanted} s",
                statistics.median(times["trunk", name]) <= wanted,
            )


def stalled() -> None:
    """Readers that do not read: what they cost the gateways."""
    print(
        "\n200 Mbit/s each way, 60 ms, --rate-in said: 100 clients that ask for 100 MB each and"
        " read nothing\n\n| quantity | value | wanted | |\n|---|---|---|---|"
    )
    bps, count = 200e6, 100
    with network(delay="30ms") as net:
        mbit = f"{bps / 1e6:g}mbit"
        net.up("--rate", mbit, "--rate-in", mbit, "--rtt", "60ms", rate=False)
        begin = {
            name: (kernel_bytes(net, name), memory(net.show(name)["pid"]))
            for name in ("near", "far")
        }
        clients = net.start("client", "python3", "-c", STALL, SERVER, count, stdout=subprocess.PIPE)
        serving.line_of(clients)
        before, now = -1, 0
        while now != before:
            time.sleep(5)
            before, now = now, link_bytes(net) // 1_000_000
        # The window of the long leg and as much again for the kernel's accounts of it; in the LAN,
        # what may wait to be sent or read.
        window, held = int(4 * bps * 0.06 / 8), 2 * 256 << 10
        for name, least in (("near", window + 2 * held), ("far", 2 * held)):
            kernel = (kernel_bytes(net, name) - begin[name][0]) / count
            own = max(0, memory(net.show(name)["pid"]) - begin[name][1]) / count
            row(
                f"{name}: the kernel's memory of each",
                f"{kernel / 1e6:.2f} MB",
                f"under {least / 1e6:.2f} MB, as documented",
                kernel < least,
                f"the proxy's {own:.1f} kB",
            )
        seconds, size, status, _ = curl(net, "1MB", 60)
        row("beside them, 1 MB", f"{seconds:.2f} s", "it arrives", size == SIZES["1 MB"])
        clients.terminate()


STALL = """
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (4000, 4000))
all = []
for _ in range(int(sys.argv[2])):
    s = socket.create_connection((sys.argv[1], 80))
    s.sendall(b'GET /100MB HTTP/1.0\\r\\n\\r\\n')
    all.append(s)
print('there', flush=True)
time.sleep(3600)
"""


def asymmetric() -> None:
    """A link that is many times faster one way, as most satellites' are."""
    print(
        "\nslower from the client than to it, 600 ms: 10 MB down, alone and beside 1 MB up,"
        " seconds\n\n| quantity | value | wanted | |\n|---|---|---|---|"
    )
    for up, down in ((1e6, 20e6), (2e6, 50e6)):
        name, rates = f"{down / 1e6:g}/{up / 1e6:g} Mbit/s", (up, down)
        times: dict[str, tuple[float, float]] = {}
        with network() as net:
            for way in ("cubic", "pep"):
                net.congestion("cubic")
                net.shape(way != "pep", rates)
                if way == "pep":
                    net.up(rates=rates)
                alone = statistics.median(curl(net, "10MB")[0] for _ in range(3))
                server = net.start("server", "iperf3", "-s", "-1", **QUIET)
                time.sleep(0.5)
                upload = net.start(
                    "client", "iperf3", "-c", SERVER, "-n", "1M", stdout=subprocess.DEVNULL
                )
                times[way] = alone, curl(net, "10MB")[0]
                upload.wait()
                server.wait()
                net.down()
        (without, beside), (alone, together) = times["cubic"], times["pep"]
        row(
            f"{name}: 10 MB",
            f"{without:.2f}, {alone:.2f}",
            "no slower than without",
            alone <= without,
            f"a full link: {RTT + 8e7 / down:.2f} s",
        )
        row(
            f"{name}: beside 1 MB up",
            f"{beside:.2f}, {together:.2f}",
            "at most 1.1 times",
            together <= 1.1 * alone,
            f"{together / alone:.2f} times",
        )


def loss() -> None:
    print(
        "\nthe same with loss: goodput, Mbit/s, of 100 MB in at most 60 s\n\n| loss | cubic, bbr,"
        " pep | wanted | |\n|---|---|---|---|"
    )
    for probability, least in ((0.001, 0.9), (0.01, 0.8)):
        with network(loss=probability) as net:
            rates = {}
            for way in ways(net):
                seconds, size, _, _ = curl(net, "100MB", 60)
                rates[way] = size * 8 / seconds
            share = rates["pep"] / RATE
            row(
                f"{probability * 100:g} %",
                ", ".join(f"{rates[w] / 1e6:.2f}" for w in ("cubic", "bbr", "pep")),
                f"{least * 100:.0f} % of the link",
                share >= least,
                f"{share * 100:.1f} %",
            )
