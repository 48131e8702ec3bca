"""The part `serve` of bench/pep/run: what `xcpnet serve` costs on a gateway whose proxy carries
very many connections, a hundred bytes a second on each, and how soon its page answers. Processor
time is counted, so that others on the machine do not count as serve; what they take makes answers
slower.
"""

import json
import os
import statistics
import subprocess
import threading
import time
from typing import Any, Protocol, TypedDict

SECONDS = 60
CONNECTIONS = """
import resource, selectors, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
role, count = sys.argv[1], int(sys.argv[2])
poll = selectors.DefaultSelector()
if role == "server":
    door = socket.create_server(("10.2.0.2", 81), backlog=8192)
    door.setblocking(False); poll.register(door, selectors.EVENT_READ)
else:
    mine = []
    for number in range(count):
        s = socket.socket(); s.setblocking(False); s.connect_ex(("10.2.0.2", 81)); mine.append(s)
        if number % 50 == 49: time.sleep(0.05)
    time.sleep(2)
    for s in mine: poll.register(s, selectors.EVENT_READ)
    print("ready", flush=True)
after = time.monotonic()
while True:
    for key, _ in poll.select(0.2):
        if role == "server" and key.fileobj is door:
            s, _ = door.accept(); s.setblocking(False); poll.register(s, selectors.EVENT_READ)
            continue
        try: data = key.fileobj.recv(65536)
        except OSError: data = b""
        if not data: poll.unregister(key.fileobj)
        elif role == "server": key.fileobj.send(data)
    if role == "client" and time.monotonic() > after:
        after += 1
        for s in mine:
            try: s.send(b"x" * 100)
            except OSError: pass
"""


class Net(Protocol):
    """What is wanted here of bench/pep/run's network."""

    processes: list[subprocess.Popen[str]]

    def ns(self, name: str) -> str:
        """A namespace's whole name."""

    def start(self, name: str, *words: object, **more: Any) -> subprocess.Popen[str]:
        """Starts a command in a namespace."""

    def show(self, name: str) -> dict[str, Any]:
        """What `xcpnet pep show` tells of a gateway."""


class Found(TypedDict):
    """What `measure` finds; `looks` a second, `median` and `worst` in seconds, `memory` in MB."""

    connections: int
    told: int
    share: float
    looks: float
    median: float
    worst: float
    memory: float


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that a process prints, which was started with stdout=PIPE."""
    assert process.stdout is not None
    return process.stdout.readline()


def spent(pid: int) -> float:
    """Seconds of processors that a process has taken."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(net: Net, program: str, connections: int) -> Found:
    """Connections that are there, the share of a core, looks, seconds until the page is there,
    memory.
    """
    net.start("server", "python3", "-c", CONNECTIONS, "server", 0)
    time.sleep(0.5)
    client = net.start(
        "client", "python3", "-c", CONNECTIONS, "client", connections, stdout=subprocess.PIPE
    )
    line_of(client)
    live = len(net.show("near")["connections"])
    serve = subprocess.Popen(
        [program, "serve", "--netns", net.ns("near"), "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    address = line_of(serve).strip()
    watch = subprocess.Popen(["curl", "-sN", address + "events"], stdout=subprocess.PIPE, text=True)
    net.processes += [serve, watch]
    looks: list[str] = []
    threading.Thread(
        target=lambda: looks.extend(iter(lambda: line_of(watch), "")), daemon=True
    ).start()
    time.sleep(3)
    before, began, had = spent(serve.pid), time.monotonic(), len(looks)
    answers = []
    while time.monotonic() - began < SECONDS:
        words = ["curl", "-s", "-o", "/dev/null", "-w", "%{time_total} %{http_code}", address]
        took, status = subprocess.run(
            words, check=True, capture_output=True, text=True
        ).stdout.split()
        answers.append(float(took) if status == "200" else float("inf"))
        time.sleep(1)
    wall = time.monotonic() - began
    with open(f"/proc/{serve.pid}/status", encoding="utf-8") as file:
        memory = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    last = json.loads(
        next(line for line in reversed(looks) if line.startswith("data: ")).removeprefix("data: ")
    )
    return {
        "connections": live,
        "told": sum(proxy["connections_in_all"] for proxy in last["proxies"]),
        "share": (spent(serve.pid) - before) / wall,
        "looks": sum(line.startswith("data: ") for line in looks[had:]) / wall,
        "median": statistics.median(answers),
        "worst": max(answers),
        "memory": memory / 1024,
    }
