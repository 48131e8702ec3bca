"""backend="linux": the lab's runs as Python has them, what is said where there is none, and that
nothing of it is left, however it ends."""

from __future__ import annotations

import html
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import xcpnet

SCENARIO = """
title    = "Two flows"
duration = "3s"
sample   = "100ms"
flow     = [{ name = "f", count = 2, from = "S", to = "D", congestion = "xcp" }]
expect   = [{ claim = "it is used", metric = "links.bottleneck.utilisation", min = 0.5 }]

[[link]]
name    = "bottleneck"
between = ["S", "D"]
rate    = "10mbit"
delay   = "10ms"
queue   = { kind = "xcp", limit = 100 }

[[variant]]
name = "XCP"

[[variant]]
name = "TCP, drop-tail"
set  = { "queue.kind" = "drop-tail", "flow.congestion" = "cubic" }
"""
CONGESTIONS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


@pytest.fixture
def lab(cli: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The program, where this machine and user can have a lab at all."""
    asked = subprocess.run([cli, "doctor", "--for", "lab"], capture_output=True, text=True)
    if os.geteuid() != 0 or asked.returncode != 0:
        pytest.skip(f"root: no lab here: {(asked.stdout + asked.stderr).strip()[-500:]}")
    monkeypatch.setenv("XCPNET", cli)
    return cli


@pytest.mark.filterwarnings("ignore")
def test_it_gives_what_the_simulator_gives(lab: str) -> None:
    s = xcpnet.Scenario.from_text(SCENARIO)
    told: list[float] = []
    begun = time.monotonic()
    r = xcpnet.run(s.with_seed(5), backend="linux", progress=told.append)
    assert time.monotonic() - begun > 6, "real time"
    assert told == sorted(told) and 0 <= told[0] < 0.5 < told[-1] <= 1
    simulated = xcpnet.run(s)
    assert (r.title, r.variants) == (simulated.title, simulated.variants)
    for variant in s.variants:
        one, other = r[variant], simulated[variant]
        assert one.summary["backend"] == "linux" and one.summary["seed"] == 5
        assert one.summary["links"]["bottleneck"]["utilisation"] > 0.5
        assert one.summary["links"].keys() == other.summary["links"].keys()
        for table in ("runs", "links", "flows", "groups"):
            mine, theirs = getattr(one, table), getattr(other, table)
            assert (len(mine), mine.column_names) == (len(theirs), theirs.column_names)
        for of in ("links", "flows"):
            mine, theirs = one.series(of), other.series(of)
            for column in ("time_s", of[:-1]):
                assert mine.column(column) == theirs.column(column)
            assert set(mine.column_names) <= set(theirs.column_names)
        goodput = one.series("flows").column("goodput_bps")
        assert sum(goodput) / 30 == pytest.approx(
            sum(f["goodput"] for f in one.summary["flows"]), rel=0.1
        )
    assert [claim["claim"] for claim in r.expect()] == ["it is used"] * 2
    # What the lab says of a run (a machine that was busy, or nothing) stands in the notebook.
    shown = r._repr_html_()
    assert shown.count("<svg") == 2
    for one in r.summaries:
        for note in one.get("notes", []):
            assert html.escape(f"linux: {one['variant']}: {note}") in shown, note
    assert [json.loads(line) for line in r.json().splitlines()] == r.summaries
    assert r.svg("delay").startswith("<svg") and "<html" in r.html()


@pytest.mark.filterwarnings("ignore")
def test_the_kernel_s_congestion_controls_can_be_named(lab: str) -> None:
    others = set(CONGESTIONS.read_text().split()) - {"cubic", "reno"}
    own = sorted(name for name in others if not name.startswith("xcp"))
    if not own:
        pytest.skip("kernel: it has no congestion control that the simulator lacks")
    n = xcpnet.Network(duration="1s").link("S", "D", rate="10mbit", delay="5ms")
    n = n.flow("S", "D", cc=own[0])
    r = xcpnet.run(n, backend="linux", series=False)
    assert r.summary["flows"][0]["goodput"] > 1e6 and len(r.series()) == 0
    with pytest.raises(
        xcpnet.ScenarioError, match=f'the simulator has no congestion control "{own[0]}"'
    ):
        xcpnet.run(n)


def at_work(home: Path) -> subprocess.Popen[str]:
    """A Python in which a lab is at work."""
    code = f"""
import xcpnet
s = xcpnet.Scenario.from_text({SCENARIO!r}).set({{"duration": "100s"}})
try:
    xcpnet.run(s, backend="linux")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    # Killed, it leaves a temporary directory.
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(home)},
    )
    deadline = time.monotonic() + 30
    while not labs_of(child.pid):
        assert child.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(1)
    return child


def labs_of(python: int) -> list[int]:
    """The programs that a process has started and that have loaded their endpoint."""
    children = Path(f"/proc/{python}/task/{python}/children").read_text().split()
    return [int(pid) for pid in children if f"xcp_lab{pid}" in CONGESTIONS.read_text().split()]


def groups(lab: int) -> list[Path]:
    return list(Path("/sys/fs/cgroup").glob(f"**/xcpnet-lab-{lab}-*"))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_of_it_is_left(lab: str, how: signal.Signals, tmp_path: Path) -> None:
    child = at_work(tmp_path)
    [program] = labs_of(child.pid)
    assert groups(program)
    child.send_signal(how)
    out, _ = child.communicate(timeout=60)
    assert out == ("interrupted\n" if how == signal.SIGINT else "")
    deadline = time.monotonic() + 20
    while Path(f"/proc/{program}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{program}").exists() and not groups(program)
    assert f"xcp_lab{program}" not in CONGESTIONS.read_text()
    assert how == signal.SIGKILL or not list(tmp_path.iterdir())


def test_what_is_wanting_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = xcpnet.Scenario.from_text(SCENARIO)
    with pytest.raises(ValueError, match="there is no backend 'unix'"):
        xcpnet.run(s, backend="unix")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(xcpnet.LabError, match="needs root: start Python"):
        xcpnet.run(s, backend="linux")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("XCPNET", "/no/such")
    with pytest.raises(xcpnet.LabError, match="XCPNET names /no/such"):
        xcpnet.run(s, backend="linux")
    monkeypatch.delenv("XCPNET")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(xcpnet.LabError, match="none is on the PATH.*make build"):
        xcpnet.run(s, backend="linux")
    (tmp_path / "xcpnet").write_text("#!/bin/sh\necho 'error: this kernel lacks it' >&2; exit 2\n")
    (tmp_path / "xcpnet").chmod(0o755)
    with pytest.raises(xcpnet.LabError, match="^this kernel lacks it$"):
        xcpnet.run(s, backend="linux")
    (tmp_path / "xcpnet").write_text("#!/bin/sh\nkill -9 $$\n")
    with pytest.raises(xcpnet.LabError, match="ended by signal 9"):
        xcpnet.run(s, backend="linux")
    (tmp_path / "xcpnet").write_text("#!/bin/sh\necho {}\n")
    with pytest.raises(xcpnet.LabError, match="of another version"):
        xcpnet.run(s, backend="linux")
