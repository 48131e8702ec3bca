"""The network that the parts of bench/pep/run measure: client, gateway, long link, gateway and
server, each in a network namespace, with nginx and what is to be downloaded.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import serving
from table import options

RATE = 20e6
RTT = 0.6
SIZES = {"100 kB": 100_000, "1 MB": 1_000_000, "10 MB": 10_000_000, "100 MB": 100_000_000}
SERVER = "10.2.0.2"
# What servers say when they are ended belongs to no table.
QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
# Of a gateway's name, what `pep up` is told of its trunk.
Trunk = Callable[[str], tuple[str, ...]]


def no_trunk(name: str) -> tuple[str, ...]:
    """Neither gateway has one."""
    return ()


def sh(*words: object, check: bool = True, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(w) for w in words], check=check, text=True, capture_output=True, **more
    )


class Net:
    """client - near - wire - far - server; no wire where there is no delay."""

    def __init__(self) -> None:
        self.prefix = f"xpb{os.getpid()}"
        self.processes: list[subprocess.Popen[str]] = []
        self.peps: list[str] = []

    def build(self, delay: bool = True, **wire: Any) -> None:
        for name in ("client", "near", "wire", "far", "server"):
            sh("ip", "netns", "add", self.ns(name))
            sh("ip", "-n", self.ns(name), "link", "set", "lo", "up")
        self.join("client", "c0", "near", "lan")
        self.join("far", "lan", "server", "s0")
        if delay:
            self.join("near", "wan", "wire", "w0")
            self.join("wire", "w1", "far", "wan")
            self.exec("wire", "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
            self.frames("near")
            self.frames("far")
        else:
            self.join("near", "wan", "far", "wan")
        for name, device, net, host in (
            ("client", "c0", 1, 2),
            ("near", "lan", 1, 1),
            ("near", "wan", 9, 1),
            ("far", "wan", 9, 2),
            ("far", "lan", 2, 1),
            ("server", "s0", 2, 2),
        ):
            sh("ip", "-n", self.ns(name), "addr", "add", f"10.{net}.0.{host}/24", "dev", device)
        for name, to, via in (
            ("client", "default", "10.1.0.1"),
            ("server", "default", "10.2.0.1"),
            ("near", "10.2.0.0/24", "10.9.0.2"),
            ("far", "10.1.0.0/24", "10.9.0.1"),
        ):
            sh("ip", "-n", self.ns(name), "route", "add", to, "via", via)
        for name in ("near", "far"):
            self.exec(name, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for name in ("client", "near", "far", "server"):
            self.exec(name, "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1")
        if delay:
            self.wire(**wire)

    def ns(self, name: str) -> str:
        return self.prefix + name

    def join(self, one: str, device: str, other: str, peer: str) -> None:
        sh(
            "ip",
            "-n",
            self.ns(one),
            "link",
            "add",
            device,
            "type",
            "veth",
            "peer",
            "name",
            peer,
            "netns",
            self.ns(other),
        )
        sh("ip", "-n", self.ns(one), "link", "set", device, "up")
        sh("ip", "-n", self.ns(other), "link", "set", peer, "up")

    def frames(self, name: str) -> None:
        self.exec(name, "python3", "-c", OFFLOADS, "wan")

    def exec(self, name: str, *words: object, **more: Any) -> subprocess.CompletedProcess[str]:
        return sh("ip", "netns", "exec", self.ns(name), *words, **more)

    def start(self, name: str, *words: object, **more: Any) -> subprocess.Popen[str]:
        command = ["ip", "netns", "exec", self.ns(name), *[str(w) for w in words]]
        process: subprocess.Popen[str] = subprocess.Popen(command, text=True, **more)
        self.processes.append(process)
        return process

    def wire(self, delay: str = "300ms", **settings: Any) -> None:
        words = [f"{k}={v}" for k, v in {"delay": delay, **settings}.items()]
        self.line = self.start("wire", options.wire, "w0", "w1", *words, stdout=subprocess.PIPE)
        if serving.line_of(self.line).strip() != "ready":
            sys.exit("bench/pep: the delay lines do not start")

    def rewire(self, **settings: Any) -> None:
        self.line.terminate()
        self.line.wait()
        self.wire(**settings)

    def shape(self, on: bool = True, rates: tuple[float, float] = (RATE, RATE)) -> None:
        """The same rates and a queue of one bandwidth-delay product, where there is no proxy."""
        for name, rate in zip(("near", "far"), rates):
            sh("tc", "-n", self.ns(name), "qdisc", "del", "dev", "wan", "root", check=False)
            if on:
                sh(
                    "tc",
                    "-n",
                    self.ns(name),
                    "qdisc",
                    "add",
                    "dev",
                    "wan",
                    "root",
                    "handle",
                    "1:",
                    "htb",
                    "default",
                    "1",
                )
                sh(
                    "tc",
                    "-n",
                    self.ns(name),
                    "class",
                    "add",
                    "dev",
                    "wan",
                    "parent",
                    "1:",
                    "classid",
                    "1:1",
                    "htb",
                    "rate",
                    f"{rate:.0f}bit",
                )
                sh(
                    "tc",
                    "-n",
                    self.ns(name),
                    "qdisc",
                    "add",
                    "dev",
                    "wan",
                    "parent",
                    "1:1",
                    "bfifo",
                    "limit",
                    int(rate * RTT / 8),
                )

    def congestion(self, name: str) -> None:
        """By the route: namespaces may not choose restricted ones as their default."""
        for host, via in (("client", "10.1.0.1"), ("server", "10.2.0.1")):
            sh(
                "ip",
                "-n",
                self.ns(host),
                "route",
                "replace",
                "default",
                "via",
                via,
                "congctl",
                name,
            )

    def trunk(self, directory: str, *more: str) -> Trunk:
        """Options for a trunk, of either gateway."""
        path = os.path.join(directory, "secret")
        with open(
            path, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)
        ) as file:
            file.write("a secret of this bench's alone")
        return lambda name: (
            "--trunk",
            "10.9.0.2" if name == "near" else "10.9.0.1",
            "--secret-file",
            path,
            *more,
        )

    def warm(self) -> None:
        """Waits until the trunk's connections are open."""
        deadline = time.monotonic() + 60
        while True:
            trunks = [self.show(name)["gateway"]["trunk"] for name in ("near", "far")]
            if all(trunk["warm"] == trunk["wanted"] for trunk in trunks):
                return
            if time.monotonic() > deadline:
                sys.exit(f"bench/pep: the trunk is not up: {trunks}")
            time.sleep(0.2)

    def up(
        self,
        *more: str,
        rate: bool = True,
        rates: tuple[float, float] | None = None,
        trunk: Trunk = no_trunk,
    ) -> None:
        for at, name in enumerate(("near", "far")):
            if rates:
                more = (
                    "--rate",
                    f"{rates[at] / 1e6:g}mbit",
                    "--rate-in",
                    f"{rates[1 - at] / 1e6:g}mbit",
                    "--rtt",
                    "600ms",
                )
            rate = rate and not rates
            words = [
                "--wan",
                "wan",
                "--lan",
                "lan",
                "--drain",
                "1s",
                *(("--rate", f"{RATE / 1e6:.0f}mbit", "--rtt", "600ms") if rate else ()),
                *(("--law", options.law) if options.law and "--law" not in more else ()),
                *trunk(name),
                *more,
            ]
            done = sh(options.xcpnet, "pep", "up", "--netns", self.ns(name), *words, check=False)
            if done.returncode:
                sys.exit(f"bench/pep: pep up: {done.stderr}")
            self.peps.append(name)

    def down(self) -> None:
        for name in self.peps:
            sh(options.xcpnet, "pep", "down", "--now", "--netns", self.ns(name), check=False)
        self.peps = []

    def show(self, name: str) -> dict[str, Any]:
        told = sh(options.xcpnet, "pep", "show", "--json", "--netns", self.ns(name)).stdout
        shown: dict[str, Any] = json.loads(told)
        return shown

    def nginx(self, directory: str) -> None:
        conf = os.path.join(directory, "nginx.conf")
        with open(conf, "w", encoding="utf-8") as file:
            tls = (
                TLS.format(d=directory)
                if os.path.exists(os.path.join(directory, "certificate"))
                else ""
            )
            file.write(NGINX.format(d=directory, tls=tls))
        self.exec("server", "nginx", "-c", conf, "-p", directory)
        self.nginx_pid = os.path.join(directory, "nginx.pid")

    def close(self) -> None:
        self.down()
        with contextlib.suppress(OSError, ValueError, AttributeError):
            os.kill(int(open(self.nginx_pid, encoding="utf-8").read()), signal.SIGTERM)
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
        for name in ("client", "near", "wire", "far", "server"):
            sh("ip", "netns", "del", self.ns(name), check=False)


NGINX = """worker_processes 1; daemon on; pid {d}/nginx.pid; error_log {d}/error.log;
events {{ worker_connections 20000; }} worker_rlimit_nofile 40000;
http {{ access_log off; sendfile on; client_body_temp_path {d}/b; proxy_temp_path {d}/p;
fastcgi_temp_path {d}/f; uwsgi_temp_path {d}/u; scgi_temp_path {d}/s; keepalive_timeout 600s;
send_timeout 600s; client_header_timeout 900s; types {{ text/html html; text/javascript js; }}
server {{ listen 80 backlog=8192; root {d}/www; {tls} }} }}
"""
TLS = "listen 443 ssl http2; ssl_certificate {d}/certificate; ssl_certificate_key {d}/key;"
# ethtool -K DEV tx off gso off tso off gro off, in this namespace.
OFFLOADS = """
import fcntl, socket, struct, sys, array
s = socket.socket()
for command in (0x24, 0x1f, 0x17, 0x2c):
    value = array.array('B', struct.pack('II', command, 0))
    fcntl.ioctl(s, 0x8946, struct.pack('16sP', sys.argv[1].encode(), value.buffer_info()[0]))
"""


def www(directory: str) -> None:
    os.makedirs(os.path.join(directory, "www"))
    for name, size in SIZES.items():
        with open(os.path.join(directory, "www", name.replace(" ", "")), "wb") as file:
            while size > 0:
                size -= file.write(os.urandom(min(size, 1 << 20)))
    with open(os.path.join(directory, "www", "tiny"), "wb") as file:
        file.write(b"x" * 1000)
    for size in (30, 720):
        with open(os.path.join(directory, "www", f"{size}kB"), "wb") as file:
            file.write(os.urandom(size * 1000))
    os.chmod(directory, 0o755)


OBJECTS, OBJECT_BYTES = 50, 15_000


def page(directory: str) -> None:
    """A page of scripts, which browsers ask for at once and wait for; and a certificate to ask for
    it by HTTP/2.
    """
    with open(os.path.join(directory, "www", "page.html"), "w", encoding="utf-8") as file:
        scripts = "".join(f'<script src="{n}.js"></script>' for n in range(OBJECTS))
        file.write(
            f"<!doctype html><title>a page</title>{scripts}<body><script>addEventListener('load',"
            " () => document.body.textContent = `took ${performance.now()} by"
            " ${performance.getEntriesByType('navigation')[0].nextHopProtocol}`)</script>"
        )
    for n in range(OBJECTS):
        with open(os.path.join(directory, "www", f"{n}.js"), "w", encoding="utf-8") as file:
            file.write("//" + os.urandom(OBJECT_BYTES // 2 - 1).hex())
    sh(
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-subj",
        f"/CN={SERVER}",
        "-days",
        "2",
        "-keyout",
        os.path.join(directory, "key"),
        "-out",
        os.path.join(directory, "certificate"),
    )


@contextlib.contextmanager
def network(browser: bool = False, **settings: Any) -> Iterator[Net]:
    with tempfile.TemporaryDirectory(prefix="xcpnet-bench-pep-") as directory:
        www(directory)
        if browser:
            page(directory)
        net = Net()
        try:
            net.build(**settings)
            net.nginx(directory)
            yield net
        finally:
            net.close()


def ways(net: Net, these: Iterable[str] = ("cubic", "bbr", "pep")) -> Iterator[str]:
    for way in these:
        if way == "pep":
            net.congestion("cubic")
            net.shape(False)
            net.up()
        else:
            net.congestion(way)
            net.shape()
        yield way
        net.down()
