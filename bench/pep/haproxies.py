"""Two HAProxy where the proxy's gateways are, in one of two ways: as relays that clients are told
of, which is what most people measure; or so that client and server see each other's addresses and
ports, as xcpnet's proxy has it, by the packet filter's rules and routes that HAProxy's manual and
the kernel's (networking/tproxy.rst) ask for.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any, Protocol

COMMON = """global
  maxconn 4000
  nbthread 2
defaults
  mode tcp
  option splice-auto
  timeout connect 10s
  timeout client 1h
  timeout server 1h
"""
RELAY = """listen a
  bind {here}:80
  server s {there}:80
listen b
  bind {here}:5201
  server s {there}:5201
"""
KEEPING = """listen a
  bind 0.0.0.0:8080 transparent
  source 0.0.0.0 usesrc client
  server s 0.0.0.0
"""
RULES = """table ip haproxies {{
  chain prerouting {{
    type filter hook prerouting priority mangle;
    meta l4proto tcp socket transparent 1 meta mark set 1 accept
    iifname "{device}" meta l4proto tcp tproxy to :8080 meta mark set 1 accept
  }}
}}
"""


class Net(Protocol):
    def exec(self, name: str, *words: object, **more: Any) -> Any: ...
    def start(self, name: str, *words: object, **more: Any) -> subprocess.Popen[str]: ...


@contextlib.contextmanager
def running(net: Net, server: str, keeps_address: bool) -> Iterator[tuple[str, list[int]]]:
    """Yields the address that the client is to ask, and the processes."""
    started = []
    with tempfile.TemporaryDirectory() as directory:
        for name, here, there, device in (
            ("near", "10.1.0.1", "10.9.0.2", "lan"),
            ("far", "10.9.0.2", server, "wan"),
        ):
            conf = os.path.join(directory, name)
            with open(conf, "w", encoding="utf-8") as file:
                file.write(
                    COMMON + (KEEPING if keeps_address else RELAY).format(here=here, there=there)
                )
            if keeps_address:
                net.exec(name, "nft", "-f", "-", input=RULES.format(device=device))
                net.exec(name, "ip", "rule", "add", "fwmark", "1", "lookup", "100")
                net.exec(
                    name, "ip", "route", "add", "local", "default", "dev", "lo", "table", "100"
                )
            words = ("haproxy", "-db", "-f", conf)
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            started.append(net.start(name, *words, **quiet))
        time.sleep(1)
        try:
            yield (server if keeps_address else "10.1.0.1"), [one.pid for one in started]
        finally:
            for one in started:
                one.send_signal(signal.SIGTERM)
                one.wait()
            if keeps_address:
                for name in ("near", "far"):
                    net.exec(name, "nft", "delete", "table", "ip", "haproxies")
                    net.exec(name, "ip", "rule", "del", "fwmark", "1", "lookup", "100")
                    net.exec(name, "ip", "route", "flush", "table", "100")
