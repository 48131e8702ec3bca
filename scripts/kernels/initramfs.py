"""What a guest starts from: a cpio archive (the kernel's "newc") with this host's programs, their
libraries, a kernel's modules and our steps.

It is written directly, so that neither root nor cpio(1) is wanted: everything in it is root's.
"""

import os
import re
import shutil
import stat
import subprocess

PROGRAMS = ("busybox", "bash", "ip", "tc", "nft", "curl", "kmod")
# By the name they are called by, kmod(8) knows what to do.
KMOD = ("modprobe", "insmod", "lsmod", "depmod", "rmmod")
# Until merged, these were folders apart.
MERGED = ("bin", "sbin", "lib", "lib64")
FILES = {
    "etc/passwd": "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/protocols": "ip 0 IP\nicmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\nipv6-icmp 58 IPv6-ICMP\n",
    "etc/os-release": 'NAME="a guest"\nID=debian\nVERSION_ID="13"\nVERSION_CODENAME=trixie\n',
}


class Missing(Exception):
    """A program of the host's that a guest needs, and is not there."""


def program(name: str) -> str:
    """Where the host has it; users' paths often lack the administrator's folders."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin")
    if not path:
        raise Missing(f"{name} is missing; scripts/setup kernels installs it")
    return path


class Archive:
    """A cpio archive that is being written; a context."""

    def __init__(self, path: str) -> None:
        self.file, self.number = open(path, "wb"), 0
        self.there: set[str] = set()

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: object) -> None:
        self._entry("TRAILER!!!", 0, b"")
        self.file.close()

    def directory(self, path: str) -> None:
        """A folder, and those above it."""
        path = path.strip("/")
        if path and path not in self.there:
            self.directory(os.path.dirname(path))
            self._entry(path, stat.S_IFDIR | 0o755, b"")

    def text(self, path: str, text: str, mode: int = 0o644) -> None:
        """A file with this in it."""
        self._leaf(path, stat.S_IFREG | mode, text.encode())

    def copy(self, source: str, path: str) -> None:
        """A file as it is on the host; what it is linked to, if it is a link."""
        with open(source, "rb") as file:
            self._leaf(
                path,
                stat.S_IFREG | (stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o755 | 0o400),
                file.read(),
            )

    def link(self, path: str, to: str) -> None:
        """A symbolic link."""
        self._leaf(path, stat.S_IFLNK | 0o777, to.encode())

    def device(self, path: str, major: int, minor: int) -> None:
        """A character device."""
        self._leaf(path, stat.S_IFCHR | 0o600, b"", (major, minor))

    def tree(self, source: str, path: str) -> None:
        """A folder of the host with everything in it."""
        for at, folders, names in os.walk(source):
            folders.sort()
            for name in sorted(names):
                self.copy(
                    os.path.join(at, name),
                    os.path.join(path, os.path.relpath(os.path.join(at, name), source)),
                )

    def binary(self, source: str, path: str) -> None:
        """A program with the libraries that the loader would take."""
        self.copy(source, path)
        told = subprocess.run(["ldd", source], text=True, capture_output=True, check=False).stdout
        for library in re.findall(r"(/\S+) \(0x", told):
            self._library(library)
            # Before glibc 2.34, the C library looks up names by one of these.
            names = os.path.join(os.path.dirname(library), "libnss_files.so.2")
            if "/libc.so" in library and os.path.exists(names):
                self._library(names)

    def _library(self, path: str) -> None:
        place = path.lstrip("/")
        if place.split("/")[0] in MERGED:
            place = "usr/" + place
        self.copy(path, os.path.normpath(place))

    def _leaf(self, path: str, mode: int, data: bytes, device: tuple[int, int] = (0, 0)) -> None:
        path = path.strip("/")
        if path not in self.there:
            self.directory(os.path.dirname(path))
            self._entry(path, mode, data, device)

    def _entry(self, path: str, mode: int, data: bytes, device: tuple[int, int] = (0, 0)) -> None:
        self.there.add(path)
        self.number += 1
        name = path.encode() + b"\0"
        # Inode, mode, user, group, links, time, size, the file system's device, the device that
        # this is, length of the name, checksum.
        fields = (self.number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name), 0)
        self.file.write(b"070701" + b"".join(b"%08X" % field for field in fields) + name)
        self._pad()
        self.file.write(data)
        self._pad()

    def _pad(self) -> None:
        self.file.write(b"\0" * (-self.file.tell() % 4))


def write(
    path: str,
    modules: str,
    release: str,
    guest: str,
    programs: dict[str, str],
    tests: dict[str, str],
) -> None:
    """Writes the archive.

    modules: where the kernel's packages are unpacked; guest: the folder of our steps; programs:
    what else is to be in /usr/bin; tests: what is to be in /tests; both by name.
    """
    tree = os.path.join(modules, "usr/lib/modules", release)
    if not os.path.isdir(tree):
        # Older packages have /lib apart.
        tree = os.path.join(modules, "lib/modules", release)
        base = modules
    else:
        base = os.path.join(modules, "usr")
    subprocess.run([program("depmod"), "-b", base, release], check=True, stderr=subprocess.DEVNULL)
    with Archive(path) as archive:
        for folder in (
            "proc",
            "sys",
            "dev",
            "run",
            "tmp",
            "root",
            "mnt",
            "var",
            "usr/bin",
            "usr/sbin",
            "usr/lib",
            "usr/lib64",
        ):
            archive.directory(folder)
        for folder in MERGED:
            archive.link(folder, f"usr/{folder}")
        # Before anything is mounted, the first process speaks through this.
        archive.device("dev/console", 5, 1)
        for name, text in FILES.items():
            archive.text(name, text)
        for name in PROGRAMS:
            archive.binary(program(name), f"usr/bin/{name}")
        for name in KMOD:
            archive.link(f"usr/bin/{name}", "kmod")
        for name, source in programs.items():
            archive.binary(source, f"usr/bin/{name}")
        for name, source in tests.items():
            archive.binary(source, f"tests/{name}")
        applets = subprocess.run(
            [program("busybox"), "--list"], text=True, capture_output=True, check=True
        ).stdout.split()
        for name in applets:
            archive.link(f"usr/bin/{name}", "busybox")
        # Where the kernel looks when it wants a module.
        archive.link("usr/sbin/modprobe", "../bin/kmod")
        archive.tree(tree, f"usr/lib/modules/{release}")
        if os.path.isdir(os.path.join(modules, "boot")):
            for name in os.listdir(os.path.join(modules, "boot")):
                if name.startswith("config-"):
                    archive.copy(os.path.join(modules, "boot", name), f"boot/{name}")
        archive.tree(guest, "steps")
        with open(os.path.join(guest, "init"), encoding="utf-8") as init:
            archive.text("init", init.read(), 0o755)
