"""Debian's stock kernels: which there are, fetched by apt, unpacked.

Each suite has a folder of its own in the cache, with apt's lists and the packages. Of the
machine's own apt only the name of the mirror is read, and nothing is changed. apt verifies the
lists' signatures and what it downloads; what lies here already is held against the lists'
checksums each time. What is done with a kernel is left to others.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shlex
import subprocess
import tarfile
import urllib.parse
from collections.abc import Iterable, Iterator

# Where a version is looked for, in this order; the newest kernel is that of the backports.
SUITES = ("trixie-security", "bookworm-security", "trixie-backports", "trixie", "bookworm")
BACKPORTS = "trixie-backports"
NEWEST = "newest"

# What apt-get download makes a file's name of.
NAMED_BY = ("Package", "Version", "Architecture")

KEYRINGS = (
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
)
ELSEWHERE = "http://deb.debian.org/debian"

# Of a kernel's packages: the kernel, what it was configured with, the modules of what this project
# touches. The rest is file systems, disks, screens.
WANTED = re.compile(
    r"""\./(?:usr/)?(?:
        boot/(?:vmlinuz|config)-[^/]+
      | lib/modules/[^/]+/(?:config|vmlinuz|modules\.(?:builtin|order)[^/]*)
      | lib/modules/[^/]+/kernel/(?:lib|crypto|arch)/.*
      | lib/modules/[^/]+/kernel/net/
        (?:802|8021q|core|ipv4|ipv6|llc|netfilter|netlink|packet|sched|unix)/.*
      | lib/modules/[^/]+/kernel/drivers/net/[^/]+
    )$""",
    re.VERBOSE,
)


class Unavailable(Exception):
    """A kernel that cannot be had here and now, and why."""


class Kernel:
    """One that is there, as packages.

    release: as `uname -r` tells it; suite: where it came from; packages: the files.
    """

    def __init__(self, release: str, suite: str, packages: list[str]) -> None:
        self.release, self.suite, self.packages = release, suite, packages

    @property
    def version(self) -> tuple[int, ...]:
        """Its first two numbers, to compare with."""
        return version_of(self.release)

    def unpack(self, directory: str) -> str:
        """Puts what WANTED names below the directory; gives the path of the kernel itself."""
        for package in self.packages:
            with subprocess.Popen(
                ["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE
            ) as source:
                assert source.stdout is not None
                with tarfile.open(fileobj=source.stdout, mode="r|") as files:
                    for member in files:
                        if (member.isreg() or member.issym()) and WANTED.match(member.name):
                            files.extract(member, directory)
                source.stdout.read()
            if source.returncode:
                raise Unavailable(f"{package} cannot be unpacked; remove it and try again")
        image = [
            os.path.join(at, name)
            for at, _, names in os.walk(directory)
            for name in names
            if name.startswith("vmlinuz")
        ]
        if not image:
            raise Unavailable(f"no kernel in {', '.join(map(os.path.basename, self.packages))}")
        return image[0]


def version_of(release: str) -> tuple[int, ...]:
    """(6, 12) of 6.12.117+deb13-cloud-amd64."""
    found = re.match(r"(\d+)\.(\d+)", release)
    assert found is not None
    return tuple(int(number) for number in found.groups())


def cache_directory() -> str:
    """Where packages are kept from one time to the next."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "xcpnet-kernels")


def find(wanted: str, cache: str | None = None) -> Kernel:
    """The newest kernel of a version (`6.12`, `6.18.15`) or of all (NEWEST), fetched if need be."""
    cache = cache or cache_directory()
    reasons = []
    for name in [BACKPORTS] if wanted == NEWEST else SUITES:
        try:
            with Suite(name, cache) as suite:
                release = suite.newest() if wanted == NEWEST else suite.newest_of(wanted)
                if release:
                    return Kernel(release, name, suite.fetch(release))
                reasons.append(f"none in {name}")
        except Unavailable as why:
            reasons.append(str(why))
    raise Unavailable("; ".join(reasons))


class Suite:
    """A suite's lists and packages; one process at a time has them, as a context."""

    def __init__(self, name: str, cache: str) -> None:
        self.name = name
        self.directory = os.path.join(cache, name)
        self.held = contextlib.ExitStack()

    def __enter__(self) -> "Suite":
        try:
            for part in ("lists/partial", "apt/archives/partial", "packages"):
                os.makedirs(os.path.join(self.directory, part), exist_ok=True)
            lock = self.held.enter_context(
                open(os.path.join(self.directory, "lock"), "w", encoding="utf-8")
            )
        except OSError as why:
            raise Unavailable(f"the cache {self.directory}: {why.strerror}") from why
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            self._configure()
            self._update()
        except BaseException:
            self.held.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.held.close()

    def newest(self) -> str | None:
        """What the suite's package of the name without a version stands for."""
        return self._release_of(
            self._apt("apt-cache", "depends", "--important", f"linux-image-cloud-{architecture()}")
        )

    def newest_of(self, version: str) -> str | None:
        """The newest of those whose version begins so, if there is one."""
        names = [
            name
            for name in self._apt("apt-cache", "pkgnames", f"linux-image-{version}").split()
            if "-cloud-" in name
        ]
        releases = [release for release in map(self._release_of, names) if release]
        fitting = [
            release for release in releases if re.match(re.escape(version) + r"(?!\d)", release)
        ]
        return max(
            fitting,
            key=lambda release: [int(number) for number in re.findall(r"\d+", release)],
            default=None,
        )

    def fetch(self, release: str) -> list[str]:
        """Paths of a kernel's packages: the image, and what newer kernels have apart from it."""
        image = f"linux-image-{release}"
        parts = self._apt("apt-cache", "depends", "--recurse", "--important", image)
        wanted = set(
            re.findall(
                rf"^linux-(?:image|binary|modules|base)-{re.escape(release)}$", parts, re.MULTILINE
            )
        ) | {image}
        # Dependencies name packages that this suite need not have.
        there = set(self._apt("apt-cache", "pkgnames", "linux-").split())
        names = sorted(wanted & there)
        folder = os.path.join(self.directory, "packages")
        told = self._apt("apt-cache", "show", "--no-all-versions", *names)
        stanzas = [
            dict(re.findall(r"^(\S+): (.*)$", stanza, re.MULTILINE))
            for stanza in told.split("\n\n")
        ]
        files = [
            (
                "_".join(keys[key].replace(":", "%3a") for key in NAMED_BY) + ".deb",
                keys["SHA256"],
            )
            for keys in stanzas
            if "SHA256" in keys
        ]
        if len(files) != len(names):
            raise Unavailable(f"the lists of {self.name} have no checksums of {', '.join(names)}")
        for name, checksum in files:
            path = os.path.join(folder, name)
            if os.path.exists(path) and sha256(path) != checksum:
                os.remove(path)
        if not all(os.path.exists(os.path.join(folder, name)) for name, _ in files):
            self._apt("apt-get", "-qq", "download", *names, cwd=folder)
        if not all(os.path.exists(os.path.join(folder, name)) for name, _ in files):
            raise Unavailable(f"apt-get download has not brought {', '.join(names)} of {self.name}")
        return [os.path.join(folder, name) for name, _ in files]

    @staticmethod
    def _release_of(text: str) -> str | None:
        found = re.search(
            rf"linux-image-(\d+\.\d+\S*-cloud-{architecture()})\s*$", text, re.MULTILINE
        )
        return found and found.group(1)

    def _configure(self) -> None:
        keyring = next((path for path in KEYRINGS if os.path.exists(path)), None)
        if not keyring:
            raise Unavailable(f"{KEYRINGS[0]} is missing (package debian-archive-keyring)")
        self._write("status", "")
        self._write(
            "sources.list", f"deb [signed-by={keyring}] {mirror(self.name)} {self.name} main\n"
        )
        at = self.directory
        settings = {
            "Dir::Etc::sourcelist": f"{at}/sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::State": at,
            "Dir::State::status": f"{at}/status",
            "Dir::State::lists": f"{at}/lists",
            "Dir::Cache": f"{at}/apt",
            "APT::Architecture": architecture(),
            # root need not become another, who could not write here.
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Acquire::Retries": "2",
            "Acquire::http::Timeout": "30",
            "Acquire::https::Timeout": "30",
        }
        self._write("apt.conf", "".join(f'{key} "{value}";\n' for key, value in settings.items()))

    def _write(self, name: str, text: str) -> None:
        with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
            file.write(text)

    def _update(self) -> None:
        try:
            self._apt("apt-get", "-qq", "update")
        except Unavailable:
            # Without a network what was fetched before serves.
            if not any(
                name.endswith(("_Packages", "_Packages.lz4"))
                for name in os.listdir(os.path.join(self.directory, "lists"))
            ):
                raise

    def _apt(self, *words: str, cwd: str | None = None) -> str:
        environment = {
            **os.environ,
            "APT_CONFIG": os.path.join(self.directory, "apt.conf"),
            "LC_ALL": "C",
        }
        try:
            done = subprocess.run(
                words,
                env=environment,
                cwd=cwd,
                text=True,
                capture_output=True,
                timeout=900,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as why:
            raise Unavailable(f"{words[0]}: {why}") from why
        # `apt-get update` warns of what it could not reach and ends with 0.
        failed = (
            re.findall(r"^[EW]: (.*)", done.stderr, re.MULTILINE)
            if words[-1] == "update" or done.returncode
            else []
        )
        if done.returncode or failed:
            raise Unavailable(
                f"{self.name}: {shlex.join(words[:3])}: {(failed or [done.stderr.strip()])[0]}"
            )
        return done.stdout


def sha256(path: str) -> str:
    """A file's checksum."""
    with open(path, "rb") as file:
        total = hashlib.sha256()
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()


def architecture() -> str:
    """Debian's name of it. Only this one's guests are known."""
    return "amd64"


def mirror(suite: str, etc: str = "/etc/apt") -> str:
    """The machine's own mirror of Debian; where it has none, Debian's."""
    archives = list(archives_of(etc))
    security = suite.endswith("-security")
    for address, suites in archives:
        if any(name.endswith("-security") for name in suites) == security:
            return address
    main = archives[0][0] if archives else ELSEWHERE
    return main.rstrip("/").removesuffix("/debian") + "/debian-security" if security else main


def archives_of(etc: str) -> Iterator[tuple[str, list[str]]]:
    """(address, suites) of each source of Debian packages that the machine's apt has."""
    folder = os.path.join(etc, "sources.list.d")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    for path in [
        os.path.join(etc, "sources.list"),
        *(os.path.join(folder, name) for name in names),
    ]:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = re.sub(r"^\s*#.*\n?", "", file.read(), flags=re.MULTILINE)
        except OSError:
            continue
        found: Iterable[tuple[str, str]]
        if path.endswith(".sources"):
            found = of_stanzas(text)
        elif path.endswith(".list"):
            found = re.findall(r"^\s*deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)", text, re.MULTILINE)
        else:
            continue
        for address, suites in found:
            # Others have packages for Debian, too: whose path is not Debian's is not meant.
            if re.search(r"/debian(-security)?/?$", urllib.parse.urlparse(address).path):
                yield address, suites.split()


def of_stanzas(text: str) -> Iterator[tuple[str, str]]:
    """Addresses and suites in the form of sources.list(5) that has keys."""
    for stanza in re.split(r"\n\s*\n", text):
        keys = dict(re.findall(r"^(\w[\w-]*):\s*(.*)$", stanza, re.MULTILINE))
        if "deb" in keys.get("Types", "").split() and keys.get("Enabled", "yes") != "no":
            for address in keys.get("URIs", "").split():
                yield address, keys.get("Suites", "")
