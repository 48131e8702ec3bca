"""What can be tried of test-kernels without a guest: verdict, table, mirror, archive.

python3 -m unittest discover -s scripts/kernels -p '*_test.py'
"""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
import unittest.mock
from collections.abc import Iterable

import debian
import guest
import initramfs
import verdict

READY = json.dumps({"ready": dict.fromkeys(verdict.PROOFS, "yes")})
NOT_READY = READY.replace("yes", "no")
ENDPOINT = {"counts": {"agreed": 1}, "room_beside_sack": {"missing": None, "devices": 1}}
TRANSFER = json.dumps(ENDPOINT) + json.dumps([{"packets": {"processed": 9}}])
GATEWAY = {"gateway": {"endpoint": {"agreed": 2}, "confirm": {"confirmed": 2}}}
GATEWAYS = json.dumps(GATEWAY) + " " + json.dumps(GATEWAY)
# A step's name, and the status and words that it has instead; None: it is not there.
Change = tuple[str, tuple[str, str] | None]


def lab(queue: float, drops: int = 0, utilisation: float = 0.998, jain: float = 1.0) -> str:
    """What `xcpnet run --json` prints of a run, as far as it is judged."""
    link = {"utilisation": utilisation, "queue_mean": queue, "drops": drops}
    return json.dumps({"jain": jain, "links": {"bottleneck": link}})


def told(
    version: tuple[int, ...], changes: Iterable[Change] = (), fault: str | None = None
) -> guest.Told:
    """What a kernel tells on which everything is as it has to be, but for the changes."""
    new = version >= verdict.OLDEST
    places = (*verdict.PLACES, *verdict.GATEWAYS)
    steps: dict[str, tuple[str, str] | None] = {f"left-{place}": ("ok", "") for place in places}
    for hook in verdict.HOOKS:
        for shaper in verdict.SHAPERS:
            steps[f"router-{hook}-{shaper}"] = ("ok", "")
    for name in ("endpoint-enable", "endpoint-show", "endpoint-disable"):
        steps[name] = ("ok", "")
    steps["endpoint-transfer"] = ("ok", TRANSFER)
    steps["lab-xcp"] = ("ok", lab(1.9))
    steps |= {name: ("ok", GATEWAYS) for name in verdict.GATEWAYS}
    if not new:
        steps = {n: s if n.startswith("left") else ("refused", "too old") for n, s in steps.items()}
        steps |= {name: ("not done", "") for name in verdict.ENDPOINT[1:]}
    steps["lab-cubic"] = ("ok", lab(60.0, 12))
    steps |= {"doctor-table": ("ok", ""), "doctor": ("ok", READY if new else NOT_READY)}
    steps |= {"proxy-socks": ("ok", ""), "kernel-log": ("ok", ""), "end": ("ok", "")}
    passed = ("ok", "passed 9 failed 0 skipped 1") if new else ("not done", "")
    steps |= {f"tests-{name}": passed for name in verdict.TESTS}
    steps |= dict(changes)
    there = [guest.Step(name, *step) for name, step in steps.items() if step]
    return guest.Told(there, fault, "console", 1.0, False)


def faults(version: tuple[int, ...], *changes: Change, fault: str | None = None) -> list[str]:
    """What is wrong with a kernel that tells so."""
    rows = verdict.Judge(version, told(version, changes, fault)).rows()
    return [fault for cell in rows.values() for fault in cell.faults]


class Verdict(unittest.TestCase):
    """Each fault is seen, and nothing else is one."""

    def test_kernels_that_are_as_they_have_to_be(self) -> None:
        for version in ((6, 1), (6, 12), (7, 3)):
            self.assertEqual(faults(version), [], version)

    def test_each_step_that_is_not(self) -> None:
        for version in ((6, 1), (6, 12)):
            for step in told(version).steps:
                if step.name == "end":
                    continue
                for status in {"FAILED", "refused", "ok", "not done"} - {step.status}:
                    words = "passed 8 failed 1 skipped 1" if step.name.startswith("tests") else "{}"
                    with self.subTest(step=step.name, version=version, status=status):
                        self.assertTrue(faults(version, (step.name, (status, words))))
                with self.subTest(step=step.name, version=version, status="absent"):
                    self.assertTrue(faults(version, (step.name, None)))

    def test_a_verifier_that_warns_of_itself_is_told_and_nothing_else_is(self) -> None:
        own = "[ 7.9] WARNING: CPU: 0 at verifier.c:2731 reg_bounds_sanity_check+0x163 Call Trace:"
        other = "[ 9.9] WARNING: CPU: 0 at net/ipv4/tcp.c:1 tcp_x+0x1 Call Trace:"
        rows = verdict.Judge((6, 18), told((6, 18), [("kernel-log", ("FAILED", own))])).rows()
        cell = rows["the kernel's own complaints"]
        self.assertEqual((cell.text, cell.faults), ("its verifier's own", []))
        for said in (other, own + other, own + " BUG: something"):
            self.assertEqual(len(faults((6, 18), ("kernel-log", ("FAILED", said)))), 1, said)

    def test_a_guest_that_was_killed(self) -> None:
        self.assertIn("no end", " ".join(faults((6, 12), fault="no end after 9 s")))

    def test_a_doctor_that_says_what_is_not_so(self) -> None:
        self.assertTrue(faults((6, 12), ("doctor", ("ok", NOT_READY))))
        self.assertTrue(faults((6, 1), ("doctor", ("ok", READY))))
        self.assertTrue(faults((6, 12), ("doctor", ("ok", READY.replace("yes", "unknown", 1)))))

    def test_figures_outside_their_bounds(self) -> None:
        for wrong in (lab(5.1), lab(1.9, drops=1), lab(1.9, utilisation=0.96), lab(1.9, jain=0.98)):
            self.assertEqual(len(faults((6, 12), ("lab-xcp", ("ok", wrong)))), 1, wrong)
        self.assertEqual(len(faults((6, 12), ("lab-cubic", ("ok", lab(1.5))))), 1)

    def test_a_transfer_that_xcp_did_not_carry(self) -> None:
        for wrong in (
            TRANSFER.replace('"agreed": 1', '"agreed": 0'),
            TRANSFER.replace("9", "0"),
            TRANSFER.replace("null", '"refused"'),
        ):
            self.assertEqual(len(faults((6, 12), ("endpoint-transfer", ("ok", wrong)))), 1)
        wrong = GATEWAYS.replace('"agreed": 2', '"agreed": 0', 1)
        self.assertEqual(len(faults((6, 12), ("proxy-gateways", ("ok", wrong)))), 1)


class Watch(unittest.TestCase):
    """A guest's lines are read, and one that hangs or dies is ended and said to have done so."""

    def told(self, does: str, limit_s: float = 30.0) -> tuple[guest.Told, list[str]]:
        """What comes of a program in qemu's place that has $steps and $console to write to."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, guest.QEMU)
            with open(path, "w", encoding="utf-8") as file:
                file.write(
                    "#!/bin/bash\n"
                    'for word; do case "$word" in\n'
                    "    file:*/console) console=${word#file:} ;;\n"
                    "    file:*/steps) steps=${word#file:} ;;\n"
                    f"esac; done\n{does}\n"
                )
            os.chmod(path, 0o755)
            paths = f"{directory}:{os.environ['PATH']}"
            with unittest.mock.patch.dict(os.environ, {"PATH": paths}):
                told = guest.run("kernel", "archive", directory, limit_s, False)
            return told, guest.last_lines(told.console)

    def test_lines_are_steps(self) -> None:
        lines = r"begin\tok\t6.12\r\nx\trefused\ta b\tc\nend\tok\t\nhalf\tok"
        told, console = self.told(f'printf \'{lines}\' > "$steps"; echo words > "$console"')
        self.assertIsNone(told.fault)
        self.assertEqual([step.name for step in told.steps], ["begin", "x", "end"])
        self.assertEqual(told.steps[1], guest.Step("x", "refused", "a b\tc"))
        self.assertEqual(console, ["words"])

    def test_one_that_hangs_is_killed(self) -> None:
        told, _ = self.told("exec sleep 600", 1.0)
        self.assertIn("was killed", told.fault or "")

    def test_one_that_dies_has_not_come_to_its_end(self) -> None:
        told, _ = self.told("printf 'begin\\tok\\t6.12\\n' > \"$steps\"")
        self.assertIn("before the last step", told.fault or "")
        told, _ = self.told("echo no such machine >&2; exit 1")
        self.assertEqual(told.fault, "no such machine")


class Table(unittest.TestCase):
    """What is written, and where."""

    def test_between_the_marks_and_nowhere_else(self) -> None:
        rows = verdict.Judge((6, 12), told((6, 12))).rows()
        text = verdict.table(["6.12.117+deb13-cloud-amd64"], {"6.12.117+deb13-cloud-amd64": rows})
        self.assertIn("| | 6.12.117+deb13 |", text)
        self.assertIn(
            "| router, `hook tcx`: shapers | htb, tbf, none, two queues (`others fair`) |", text
        )
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "page.md")
            for old in ("", "an older table\n"):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f"before\n{verdict.BEGIN}\n{old}{verdict.END}\nafter\n")
                verdict.write(path, text)
                with open(path, encoding="utf-8") as file:
                    self.assertEqual(
                        file.read(), f"before\n{verdict.BEGIN}\n{text}\n{verdict.END}\nafter\n"
                    )
            with open(path, "w", encoding="utf-8") as file:
                file.write("no marks\n")
            with self.assertRaises(SystemExit):
                verdict.write(path, text)


class Mirror(unittest.TestCase):
    """The machine's own mirror, whichever way its sources are written."""

    def addresses(self, name: str, text: str) -> tuple[str, ...]:
        """Of the main archive and of the security archive, with one file of sources."""
        with tempfile.TemporaryDirectory() as etc:
            os.makedirs(os.path.join(etc, "sources.list.d"))
            with open(os.path.join(etc, name), "w", encoding="utf-8") as file:
                file.write(text)
            return tuple(debian.mirror(suite, etc) for suite in ("trixie", "trixie-security"))

    def test_stanzas(self) -> None:
        text = (
            "# URIs: http://no/debian\nTypes: deb\nURIs: http://a/debian\nSuites: trixie\n\n"
            "Types: deb\nURIs: http://b/debian-security\nSuites: trixie-security\n\n"
            "Types: deb\nURIs: http://c/node\nSuites: nodistro\n"
        )
        found = self.addresses("sources.list.d/debian.sources", text)
        self.assertEqual(found, ("http://a/debian", "http://b/debian-security"))

    def test_lines(self) -> None:
        text = "#deb http://no/debian x main\ndeb [arch=amd64] http://a/debian/ trixie main\n"
        self.assertEqual(
            self.addresses("sources.list", text), ("http://a/debian/", "http://a/debian-security")
        )

    def test_a_machine_that_is_no_debian(self) -> None:
        found = self.addresses("sources.list", "deb http://archive.ubuntu.com/ubuntu noble main\n")
        self.assertEqual(found[0], debian.ELSEWHERE)
        self.assertEqual(found[1], debian.ELSEWHERE + "-security")


class Archive(unittest.TestCase):
    """The archive as cpio(1) and the kernel read it."""

    @unittest.skipUnless(shutil.which("cpio"), "cpio is missing")
    def test_what_cpio_makes_of_it(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "archive")
            with initramfs.Archive(path) as archive:
                archive.text("a/b/file", "words\n", 0o755)
                archive.link("a/link", "b/file")
                archive.text("a/b/file", "the first stays\n")
            with open(path, "rb") as file:
                subprocess.run(["cpio", "-id", "--quiet"], stdin=file, cwd=directory, check=True)
            with open(os.path.join(directory, "a/link"), encoding="utf-8") as file:
                self.assertEqual(file.read(), "words\n")
            self.assertTrue(os.access(os.path.join(directory, "a/b/file"), os.X_OK))


if __name__ == "__main__":
    unittest.main()
