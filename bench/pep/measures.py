"""What the parts of bench/pep/run measure with: curl, iperf3 and ab, and the kernel's counters."""

import json
import os
import re
from collections.abc import Iterable

from network import SERVER, Net, sh


def curl(net: Net, path: str, limit: float = 180) -> tuple[float, int, int, int]:
    """Time, bytes and status of a download."""
    done = net.exec(
        "client",
        "curl",
        "-s",
        "-o",
        "/dev/null",
        "-m",
        limit,
        "-w",
        "%{time_total} %{size_download} %{http_code} %{exitcode}",
        f"http://{SERVER}/{path}",
        check=False,
    )
    seconds, size, status, code = done.stdout.split()
    return float(seconds), int(size), int(status), int(code)


def received(net: Net, device: str = "c0", name: str = "client") -> int:
    return int(net.exec(name, "cat", "/proc/net/dev").stdout.split(device + ":")[1].split()[0])


def kernel_bytes(net: Net, name: str) -> int:
    """Memory of a gateway's TCP sockets, in the kernel's own accounts: what was received, what is
    to be sent.
    """
    text = net.exec(name, "ss", "-tmnH").stdout
    return sum(int(n) for n in re.findall(r"skmem:\(r(\d+)", text)) + sum(
        int(n) for n in re.findall(r",w(\d+),", text)
    )


def backlog(net: Net, name: str = "far") -> int:
    text = sh("tc", "-n", net.ns(name), "-s", "-j", "qdisc", "show", "dev", "wan").stdout
    return max((q.get("backlog", 0) for q in json.loads(text)), default=0)


def flows(net: Net) -> dict[str, int]:
    """Bytes received on each of the client's connections, by port."""
    text = net.exec("client", "ss", "-tinH", "dst", SERVER, "dport", "=", ":80").stdout.splitlines()
    found = {}
    for first, second in zip(text[::2], text[1::2]):
        for word in second.split():
            if word.startswith("bytes_received:"):
                found[first.split()[3]] = int(word.split(":")[1])
    return found


def link_bytes(net: Net) -> int:
    """Frames that came across the long link."""
    return received(net, "wan", "near")


def memory(pid: int, what: str = "VmRSS") -> int:
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(what))


def cpu(pids: Iterable[int]) -> float:
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def connections_per_second(net: Net, target: str, count: int = 20000, at_once: int = 50) -> float:
    url = f"http://{target}/tiny"
    done = net.exec("client", "ab", "-q", "-n", count, "-c", at_once, url, check=False)
    found = re.search(r"^Requests per second:\s+([\d.]+)", done.stdout, re.MULTILINE)
    return float(found.group(1)) if found else 0.0


def iperf3(net: Net, target: str, streams: int) -> tuple[float, float]:
    """Gbit/s, and the Gbit that came, in eight seconds; zeros if it failed."""
    words = ("iperf3", "-c", target, "-t", "8", "-P", streams, "-J")
    end = json.loads(net.exec("client", *words, check=False).stdout).get("end", {})
    end = end.get("sum_received", {"bits_per_second": 0, "bytes": 0})
    return end["bits_per_second"] / 1e9, max(end["bytes"] * 8e-9, 1e-9)
