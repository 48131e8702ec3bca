"""What each step of a guest has to come to on which kernel, and the table of kernels and features.

The bounds are those of docs/linux.md; what the steps do is in guest/.
"""

import dataclasses
import json
import os
import re

# The oldest kernel on which everything has to work. Older ones have to refuse it in clear words.
OLDEST = (6, 12)

XCP_UTILISATION, XCP_JAIN, XCP_QUEUE = 0.97, 0.99, 5.0
CUBIC_UTILISATION = 0.9

HOOKS, SHAPERS = ("tcx", "clsact"), ("htb", "tbf", "none")
PLACES = ("doctor", "endpoint", "router", "lab", "proxy", "tests")
GATEWAYS = {"proxy-gateways": "", "proxy-gateways-confirm": " with `--confirm`"}
TESTS = ("kernel_and_host", "plumbing", "traffic")

BEGIN = "<!-- test-kernels: this table is written by `make test-kernels` -->"
END = "<!-- end of test-kernels -->"


@dataclasses.dataclass
class Cell:
    """A feature on a kernel: in words for the table, and what is not as it has to be."""

    text: str
    faults: list = dataclasses.field(default_factory=list)


class Judge:
    """One kernel's steps, row by row."""

    def __init__(self, version, told):
        self.new = version >= OLDEST
        self.told = told
        self.steps = {step.name: step for step in told.steps}

    def rows(self):
        """The table's rows in their order: what it is about, and the Cell."""
        rows = {"doctor: endpoint, router, lab ready": self._doctor(), "endpoint": self._endpoint()}
        for hook in HOOKS:
            rows[f"router, `hook {hook}`: shapers"] = self._router(hook)
        rows["lab, XCP"] = self._lab("lab-xcp", self._xcp_faults)
        rows["lab, cubic"] = self._lab("lab-cubic", self._cubic_faults)
        rows["proxy for SOCKS, not root"] = self._plain(["proxy-socks"], "works", True)
        for step, how in GATEWAYS.items():
            rows[f"proxy on two gateways{how}"] = self._gateways(step)
        for name in TESTS:
            rows[f"tests: `{name}`"] = self._tests(f"tests-{name}")
        rows["left behind"] = self._left()
        rows["the kernel's own complaints"] = self._plain(["kernel-log"], "none", True)
        if self.told.fault:
            rows["the guest"] = Cell("**FAILED**", [self.told.fault])
        return rows

    def _fault(self, name, status):
        """Why a step has not come to a status; None if it has."""
        step = self.steps.get(name)
        if not step:
            return f"{name}: never came to it"
        return None if step.status == status else f"{name}: {step.status}: {step.words[:600]}"

    def _plain(self, names, text, everywhere=False):
        """Steps that work from OLDEST on, or everywhere; and are refused before."""
        wanted = "ok" if everywhere or self.new else "refused"
        faults = [fault for name in names if (fault := self._fault(name, wanted))]
        if faults:
            return Cell("**FAILED**", faults)
        return Cell(text if wanted == "ok" else "refused")

    def _ok(self, name):
        return name in self.steps and self.steps[name].status == "ok"

    def _json(self, name):
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

    def _doctor(self):
        cell = self._plain(["doctor-table", "doctor"], "", True)
        if cell.faults:
            return cell
        try:
            ready = self._json("doctor")[0]["ready"]
        except (IndexError, KeyError, TypeError):
            return Cell("**FAILED**", ["doctor --json printed no `ready`"])
        proofs = {
            "endpoint": "endpoint-enable",
            "router": "router-tcx-htb",
            "lab": "lab-xcp",
            "pep": "proxy-gateways",
        }
        for group, step in proofs.items():
            if group in ready and (ready[group] == "yes") != self._ok(step):
                status = self.steps[step].status if step in self.steps else "not run"
                cell.faults.append(f"doctor says {group}: {ready[group]}, but {step} is {status}")
        cell.text = ", ".join(ready[group] for group in ("endpoint", "router", "lab"))
        return cell

    def _endpoint(self):
        if not self.new:
            return self._plain(["endpoint-enable"], "")
        names = ["endpoint-enable", "endpoint-show", "endpoint-transfer", "endpoint-disable"]
        cell = self._plain(names, "works")
        if not cell.faults:
            endpoint, routers = self._json("endpoint-transfer")
            if not endpoint["counts"]["agreed"]:
                cell.faults.append("endpoint-transfer: the hosts have not agreed on XCP")
            if not routers[0]["packets"]["processed"]:
                cell.faults.append("endpoint-transfer: the router has seen no packet of XCP")
        return cell

    def _router(self, hook):
        return self._plain([f"router-{hook}-{shaper}" for shaper in SHAPERS], ", ".join(SHAPERS))

    def _lab(self, name, judge):
        if not self.new:
            return self._plain([name], "")
        cell = self._plain([name], "")
        if cell.faults:
            return cell
        run = self._json(name)[0]
        link = run["links"]["bottleneck"]
        numbers = {
            "utilisation": link["utilisation"],
            "jain": run["jain"],
            "queue": link["queue_mean"],
            "drops": link["drops"],
        }
        text = (
            "utilisation {utilisation:.3f}, Jain {jain:.4f}, mean queue {queue:.1f}, drops {drops}"
        )
        return Cell(text.format(**numbers), [f"{name}: {fault}" for fault in judge(numbers)])

    def _xcp_faults(self, xcp):
        if xcp["utilisation"] < XCP_UTILISATION:
            yield f"utilisation {xcp['utilisation']:.4f}, not {XCP_UTILISATION}"
        if xcp["jain"] < XCP_JAIN:
            yield f"Jain's index {xcp['jain']:.4f}, not {XCP_JAIN}"
        if xcp["queue"] > XCP_QUEUE:
            yield f"a mean queue of {xcp['queue']:.1f} packets, not {XCP_QUEUE}"
        if xcp["drops"]:
            yield f"{xcp['drops']} drops, not none"
        if self._ok("lab-cubic"):
            cubic = self._json("lab-cubic")[0]["links"]["bottleneck"]["queue_mean"]
            if xcp["queue"] >= cubic:
                yield f"a mean queue of {xcp['queue']:.1f} packets, cubic's {cubic:.1f}"

    def _cubic_faults(self, cubic):
        if cubic["utilisation"] < CUBIC_UTILISATION:
            yield f"utilisation {cubic['utilisation']:.4f}, not {CUBIC_UTILISATION}"

    def _gateways(self, name):
        cell = self._plain([name], "works")
        if self.new and not cell.faults:
            for where, shown in zip(("near", "far"), self._json(name), strict=True):
                gateway = shown["gateway"]
                if not gateway["endpoint"]["agreed"]:
                    cell.faults.append(f"{name}: no leg of the {where} gateway went by XCP")
                if name.endswith("confirm") and not gateway["confirm"]["confirmed"]:
                    cell.faults.append(f"{name}: the {where} gateway has confirmed nothing")
        return cell

    def _tests(self, name):
        found = (
            re.match(r"passed (\d+) failed (\S+) skipped (\d+)", self.steps[name].words)
            if name in self.steps
            else None
        )
        if not found:
            return Cell("**FAILED**", [f"{name}: never came to it"])
        passed, failed, skipped = found.groups()
        return Cell(
            f"{passed} passed, {skipped} skipped", [f for f in [self._fault(name, "ok")] if f]
        )

    def _left(self):
        names = [f"left-{place}" for place in (*PLACES, *GATEWAYS)]
        return self._plain(names, "nothing", True)


def table(releases, columns):
    """Markdown: a row for each feature, a column for each kernel."""
    short = [release.split("-cloud")[0] for release in releases]
    lines = ["| | " + " | ".join(short) + " |", "|---" * (len(releases) + 1) + "|"]
    names = list(dict.fromkeys(name for release in releases for name in columns[release]))
    for name in names:
        cells = [columns[release].get(name, Cell("")) for release in releases]
        lines.append(f"| {name} | " + " | ".join(cell.text for cell in cells) + " |")
    return "\n".join(lines)


def write(path, text):
    """Puts a text between the marks of a file; what is outside them stays."""
    with open(path, encoding="utf-8") as file:
        old = file.read()
    if old.count(BEGIN) != 1 or old.count(END) != 1 or old.index(BEGIN) > old.index(END):
        raise SystemExit(f"test-kernels: {path} has no place for the table: {BEGIN} and {END}")
    new = old[: old.index(BEGIN) + len(BEGIN)] + f"\n{text}\n" + old[old.index(END) :]
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(new)
    os.replace(path + ".new", path)
