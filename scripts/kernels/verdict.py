"""What each step of a guest has to come to on which kernel, and the table of kernels and features.

The bounds are those of docs/linux.md; what the steps do is in guest/.
"""

import dataclasses
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from guest import Told

# The oldest kernel on which everything has to work. Older ones have to refuse it in clear words.
OLDEST = (6, 12)

XCP_UTILISATION, XCP_JAIN, XCP_QUEUE = 0.97, 0.99, 5.0
CUBIC_UTILISATION = 0.9

HOOKS, SHAPERS = ("tcx", "clsact"), ("htb", "tbf", "none", "others")
ROUTERS = "htb, tbf, none, two queues (`others fair`)"
PLACES = ("doctor", "endpoint", "router", "lab", "proxy", "tests")
GATEWAYS = {"proxy-gateways": "", "proxy-gateways-confirm": " with `--confirm`"}
ENDPOINT = ("endpoint-enable", "endpoint-show", "endpoint-transfer", "endpoint-disable")
# What needs nothing of the kernel that older ones lack.
EVERYWHERE = ("doctor", "doctor-table", "lab-cubic", "proxy-socks", "kernel-log")
# What shows that the doctor is right in what it says of each.
PROOFS = {
    "endpoint": "endpoint-enable",
    "router": "router-tcx-htb",
    "lab": "lab-xcp",
    "pep": "proxy-gateways",
}
# How kernels complain (guest/left.sh), and where 6.18.15 does so of itself: "verifier bug: REG
# INVARIANTS VIOLATION", mended in later ones.
COMPLAINTS = ("WARNING:", "BUG:", "Oops", "protection fault", "stall")
VERIFIERS_OWN = " reg_bounds_sanity_check+"
TESTS = ("kernel_and_host", "plumbing", "traffic")

BEGIN = "<!-- test-kernels: this table is written by `make test-kernels` -->"
END = "<!-- end of test-kernels -->"


# What finds the faults in what a run of the lab has measured.
LabJudge = Callable[[dict[str, float]], Iterable[str]]


@dataclasses.dataclass
class Cell:
    """A feature on a kernel: in words for the table, and what is not as it has to be."""

    text: str
    faults: list[str] = dataclasses.field(default_factory=list)


class Judge:
    """One kernel's steps, row by row."""

    def __init__(self, version: tuple[int, ...], told: Told) -> None:
        self.new = version >= OLDEST
        self.told = told
        self.steps = {step.name: step for step in told.steps}

    def rows(self) -> dict[str, Cell]:
        """The table's rows in their order: what it is about, and the Cell."""
        rows = {
            "doctor: " + ", ".join(PROOFS) + " ready": self._doctor(),
            "endpoint": self._plain(ENDPOINT, "works", self._transfer_faults),
        }
        for hook in HOOKS:
            names = [f"router-{hook}-{shaper}" for shaper in SHAPERS]
            rows[f"router, `hook {hook}`: shapers"] = self._plain(names, ROUTERS)
        rows["lab, XCP"] = self._lab("lab-xcp", self._xcp_faults)
        rows["lab, cubic"] = self._lab("lab-cubic", self._cubic_faults)
        rows["proxy for SOCKS, not root"] = self._plain(["proxy-socks"], "works")
        for name, how in GATEWAYS.items():
            row = self._plain([name], "works", partial(self._gateway_faults, name))
            rows[f"proxy on two gateways{how}"] = row
        for name in TESTS:
            rows[f"tests: `{name}`"] = self._tests(f"tests-{name}")
        left = [f"left-{place}" for place in (*PLACES, *GATEWAYS)]
        rows["left behind"] = self._plain(left, "nothing")
        rows["the kernel's own complaints"] = self._complaints()
        if self.told.fault:
            rows["the guest"] = Cell("**FAILED**", [self.told.fault])
        return rows

    def _wanted(self, name: str) -> str:
        """The status with which a step has to end here."""
        if self.new or name in EVERYWHERE or name.startswith("left-"):
            return "ok"
        return "not done" if name in ENDPOINT[1:] or name.startswith("tests-") else "refused"

    def _faults(self, names: Sequence[str]) -> Iterator[str]:
        """What of some steps has not come to that."""
        for name in names:
            step = self.steps.get(name)
            if not step:
                yield f"{name}: never came to it"
            elif step.status != self._wanted(name):
                yield f"{name}: {step.status}: {step.words[:600]}"

    def _plain(
        self, names: Sequence[str], text: str, more: Callable[[], Iterable[str]] | None = None
    ) -> Cell:
        """Steps that have to end so, and where they have to be ok what more is wrong with them."""
        faults = list(self._faults(names))
        wanted = self._wanted(names[0])
        if wanted == "ok" and more and not faults:
            faults = self._read(names[0], more)
        if faults:
            return Cell("**FAILED**", faults)
        return Cell(text if wanted == "ok" else wanted)

    def _complaints(self) -> Cell:
        """What it logged. A verifier that warns of its own arithmetic has taken the program."""
        said = self.steps["kernel-log"].words if "kernel-log" in self.steps else ""
        own = said.count(VERIFIERS_OWN)
        others = sum(said.count(word) for word in COMPLAINTS)
        if own and own == others:
            return Cell("its verifier's own")
        return self._plain(["kernel-log"], "none")

    @staticmethod
    def _read(name: str, judge: Callable[[], Iterable[str]]) -> list[str]:
        """The faults that a judge finds in what a step has reported, if it can be read at all."""
        try:
            return list(judge())
        except (ValueError, KeyError, IndexError, TypeError) as why:
            return [f"{name}: reported something else than it should: {why!r}"]

    def _ok(self, name: str) -> bool:
        return name in self.steps and self.steps[name].status == "ok"

    def _json(self, name: str) -> list[Any]:
        """What a step has reported: JSON values, one after another."""
        text, values = self.steps[name].words, []
        decoder = json.JSONDecoder()
        while (at := re.search(r"[{\[]", text)) is not None:
            try:
                value, end = decoder.raw_decode(text, at.start())
            except ValueError:
                break
            values.append(value)
            text = text[end:]
        return values

    def _doctor(self) -> Cell:
        cell = self._plain(["doctor", "doctor-table"], "")
        if not cell.faults:
            cell.faults = self._read("doctor", lambda: self._doctor_faults(cell))
        return cell

    def _doctor_faults(self, cell: Cell) -> Iterator[str]:
        ready = self._json("doctor")[0]["ready"]
        cell.text = ", ".join(ready[group] for group in PROOFS)
        for group, name in PROOFS.items():
            if (ready[group] == "yes") != self._ok(name):
                status = self.steps[name].status if name in self.steps else "not run"
                yield f"doctor says {group}: {ready[group]}, but {name} is {status}"

    def _transfer_faults(self) -> Iterator[str]:
        endpoint, routers = self._json("endpoint-transfer")
        if not endpoint["counts"]["agreed"]:
            yield "endpoint-transfer: the hosts have not agreed on XCP"
        if why := endpoint["room_beside_sack"]["missing"]:
            yield f"endpoint-transfer: no room beside SACK: {why}"
        if not routers[0]["packets"]["processed"]:
            yield "endpoint-transfer: the router has seen no packet of XCP"

    def _lab(self, name: str, judge: LabJudge) -> Cell:
        cell = self._plain([name], "")
        if not cell.faults and not cell.text:
            cell.faults = self._read(name, lambda: self._lab_faults(cell, name, judge))
        return cell

    def _lab_faults(self, cell: Cell, name: str, judge: LabJudge) -> Iterator[str]:
        (run,) = self._json(name)
        link = run["links"]["bottleneck"]
        found = {key: link[key] for key in ("utilisation", "queue_mean", "drops")}
        found["jain"] = run["jain"]
        cell.text = (
            "utilisation {utilisation:.3f}, Jain {jain:.4f}, mean queue {queue_mean:.1f}, "
            "drops {drops}"
        ).format(**found)
        for fault in judge(found):
            yield f"{name}: {fault}"

    def _xcp_faults(self, xcp: dict[str, float]) -> Iterator[str]:
        if xcp["utilisation"] < XCP_UTILISATION:
            yield f"utilisation {xcp['utilisation']:.4f}, not {XCP_UTILISATION}"
        if xcp["jain"] < XCP_JAIN:
            yield f"Jain's index {xcp['jain']:.4f}, not {XCP_JAIN}"
        if xcp["queue_mean"] > XCP_QUEUE:
            yield f"a mean queue of {xcp['queue_mean']:.1f} packets, not {XCP_QUEUE}"
        if xcp["drops"]:
            yield f"{xcp['drops']} drops, not none"
        if self._ok("lab-cubic"):
            cubic = self._json("lab-cubic")[0]["links"]["bottleneck"]["queue_mean"]
            if xcp["queue_mean"] >= cubic:
                yield f"a mean queue of {xcp['queue_mean']:.1f} packets, cubic's {cubic:.1f}"

    def _cubic_faults(self, cubic: dict[str, float]) -> Iterator[str]:
        if cubic["utilisation"] < CUBIC_UTILISATION:
            yield f"utilisation {cubic['utilisation']:.4f}, not {CUBIC_UTILISATION}"

    def _gateway_faults(self, name: str) -> Iterator[str]:
        for where, shown in zip(("near", "far"), self._json(name), strict=True):
            gateway = shown["gateway"]
            if not gateway["endpoint"]["agreed"]:
                yield f"{name}: no leg of the {where} gateway went by XCP"
            if name.endswith("confirm") and not gateway["confirm"]["confirmed"]:
                yield f"{name}: the {where} gateway has confirmed nothing"

    def _tests(self, name: str) -> Cell:
        cell = self._plain([name], "")
        if not cell.faults and self.new:
            words = self.steps[name].words
            count = dict(re.findall(r"(passed|failed|skipped) (\d+)", words))
            cell.text = f"{count.get('passed')} passed, {count.get('skipped')} skipped"
            if count.get("failed") != "0" or count.get("passed") in (None, "0"):
                cell.faults.append(f"{name}: {words}")
        return cell


def table(releases: list[str], columns: dict[str, dict[str, Cell]]) -> str:
    """Markdown: a row for each feature, a column for each kernel."""
    short = [release.split("-cloud")[0] for release in releases]
    lines = ["| | " + " | ".join(short) + " |", "|---" * (len(releases) + 1) + "|"]
    names = list(dict.fromkeys(name for release in releases for name in columns[release]))
    for name in names:
        cells = [columns[release].get(name, Cell("")) for release in releases]
        lines.append(f"| {name} | " + " | ".join(cell.text for cell in cells) + " |")
    return "\n".join(lines)


def write(path: str, text: str) -> None:
    """Puts a text between the marks of a file; what is outside them stays."""
    with open(path, encoding="utf-8") as file:
        old = file.read()
    if old.count(BEGIN) != 1 or old.count(END) != 1 or old.index(BEGIN) > old.index(END):
        raise SystemExit(f"test-kernels: {path} has no place for the table: {BEGIN} and {END}")
    new = old[: old.index(BEGIN) + len(BEGIN)] + f"\n{text}\n" + old[old.index(END) :]
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(new)
    os.replace(path + ".new", path)
