"""A guest: qemu with a kernel and an archive, watched until it ends or has to be ended.

What it tells over its second serial line comes back as Steps; what it wrote on its console lies
in a file. What ought to have come of a step is left to verdict.py.
"""

import dataclasses
import os
import re
import shutil
import signal
import subprocess
import threading
import time

QEMU = "qemu-system-x86_64"
MEMORY_MB = 1536
# Guests say "begin" within a few seconds; where KVM is there but does not work, never.
BEGIN_KVM_S = 60
# `nowatchdog` and the like: a guest stands still for seconds where the host is busy.
COMMAND_LINE = (
    "console=ttyS0 panic=-1 quiet nowatchdog no_timer_check mitigations=off cryptomgr.notests"
)

# With -icount a guest's time is the instructions it has executed, 2 ns each, and leaps where it
# waits: neither a slow host nor a busy one disturbs what is measured in it. -la57: qemu's "max"
# has five levels of page tables, which cost. One processor: 6.1 hangs bringing up a second, and
# -icount has them by turns.
KVM = ("-accel", "kvm", "-cpu", "host")
TCG = ("-accel", "tcg,thread=single", "-icount", "shift=1,sleep=off", "-cpu", "max,-la57")


@dataclasses.dataclass
class Step:
    """What a guest told of a step: its name, "ok", "refused", "FAILED" or "not done", words."""

    name: str
    status: str
    words: str


@dataclasses.dataclass
class Told:
    """What came of a guest.

    steps: in their order; fault: why it did not come to its end, None if it did; console: the
    file; seconds: of the host's time; kvm: whether by KVM.
    """

    steps: list[Step]
    fault: str | None
    console: str
    seconds: float
    kvm: bool


def kvm() -> bool:
    """Whether the processor and this user's rights allow KVM; that it works is seen at boot."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    # There are hosts whose /dev/kvm takes kernels that were made for it, and no others.
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return re.search(r"^flags\s*:.*\b(vmx|svm)\b", file.read(), re.MULTILINE) is not None


# Other threads' guests, when one of them has been interrupted.
_stopped = threading.Event()


def stop_all() -> None:
    """Ends the guests of every thread."""
    _stopped.set()


def stopped() -> bool:
    """Whether they have been ended so."""
    return _stopped.is_set()


def run(image: str, archive: str, directory: str, limit_s: float, with_kvm: bool) -> Told:
    """Starts a guest and waits for its end, for limit_s seconds at the most."""
    if with_kvm:
        told = _run(image, archive, directory, limit_s, KVM)
        if told.steps or stopped():
            return told
    return _run(image, archive, directory, limit_s, TCG)


def _run(
    image: str, archive: str, directory: str, limit_s: float, accelerator: tuple[str, ...]
) -> Told:
    console, results = os.path.join(directory, "console"), os.path.join(directory, "steps")
    by_kvm = accelerator is KVM
    words = [
        *(("setpriv", "--pdeathsig", "KILL") if shutil.which("setpriv") else ()),
        *(QEMU, *accelerator, "-smp", "1", "-m", str(MEMORY_MB), "-no-reboot", "-nodefaults"),
        *("-nic", "none", "-display", "none", "-monitor", "none"),
        *("-serial", f"file:{console}", "-serial", f"file:{results}"),
        *("-kernel", image, "-initrd", archive, "-append", COMMAND_LINE),
    ]
    start = time.monotonic()
    fault: str | None = None
    with open(os.path.join(directory, "qemu"), "w+", encoding="utf-8") as said:
        guest = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            while guest.poll() is None and not fault:
                if stopped():
                    fault = "was stopped"
                time.sleep(0.2)
                passed = time.monotonic() - start
                if passed > limit_s:
                    fault = f"no end after {limit_s:.0f} s, and was killed"
                elif by_kvm and passed > BEGIN_KVM_S and not _steps(results):
                    fault = f"by KVM, no beginning within {BEGIN_KVM_S} s, and was killed"
        finally:
            if guest.poll() is None:
                guest.send_signal(signal.SIGKILL)
            guest.wait()
        said.seek(0)
        complaint = said.read().strip()
    steps = _steps(results)
    if not fault and not any(step.name == "end" for step in steps):
        fault = complaint or "the kernel stopped before the last step"
    return Told(steps, fault, console, time.monotonic() - start, by_kvm)


def _steps(results: str) -> list[Step]:
    try:
        with open(results, encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n")
    except OSError:
        return []
    # The last piece is what has not been ended yet.
    return [Step(*line.rstrip("\r").split("\t", 2)) for line in lines[:-1] if line.count("\t") >= 2]


def last_lines(path: str, count: int = 25) -> list[str]:
    """The end of a console, for those who want to know what it hung in."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [line.rstrip() for line in file.read().splitlines() if line.strip()][-count:]
    except OSError:
        return []
