"""Two ends of many connections whose bytes both can make: what arrives must be a prefix of what was
sent, and all of it unless there was a reset.

    exact.py serve PORT            exact.py ask SERVER PORT BYTES            exact.py check

A connection begins with 24 bytes: its number, how much the server sends, how much the client sends.
Both ways carry noise from a place that the number chooses (SHA-256 in counter mode, which repeats
after 8 MB, so that making it costs little). Each end judges what it receives and both say what they
found, `ask` when it has had its BYTES, `serve` at SIGTERM.

`check` puts a proxy between that does one thing wrong at a time, and ends with status 1 unless the
ends see each of them, and nothing where there is nothing: a referee that cannot see a fault finds
none.
"""

import ctypes
import hashlib
import json
import os
import random
import signal
import socket
import struct
import sys
import threading
import time

BLOCK = 1 << 16
REPEATS = 8 << 20
NOISE = b"".join(hashlib.sha256(struct.pack("<Q", i)).digest() for i in range(REPEATS >> 5)) * 2
AT_ONCE = 24
HEAD = struct.Struct("<QQQ")
# Longer than a machine that others measure on may stand still.
PATIENCE = 1200
# Of tcp_info's states.
TCP_CLOSE = 7
LIBC = ctypes.CDLL(None, use_errno=True)
Address = tuple[str, int]


class Findings:
    """What one end found, over all connections."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.said = {
            "connections": 0,
            "bytes": 0,
            "wrong": 0,
            "truncated": 0,
            "silent": 0,
            "reset": 0,
            "refused": 0,
            "open": 0,
        }

    def add(self, **counts: int) -> None:
        with self.lock:
            for what, count in counts.items():
                self.said[what] += count

    def judge(self, got: int, how: str, wanted: int) -> None:
        """Of what was received on a connection. More than was sent is wrong, too."""
        if got > wanted:
            how = "wrong"
        if how == "end":
            self.add(bytes=got, truncated=got < wanted)
        else:
            self.add(bytes=got, **{how: 1})


def stream(number: int, at: int, length: int) -> bytes:
    """Bytes of a stream from a place on: a window into the noise."""
    place = (number * 1000003 + at) % REPEATS
    return NOISE[place : place + length]


def send(sock: socket.socket, number: int, length: int, failed: threading.Event) -> None:
    """Sends a stream and ends it; what fails is ended by a reset, so that less never looks like
    all, and noted.
    """
    at = 0
    try:
        while at < length:
            part = stream(number, at, min(BLOCK, length - at))
            sock.sendall(part)
            at += len(part)
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        failed.set()
        abort(sock)


def receive(
    sock: socket.socket, number: int, sender: threading.Thread, failed: threading.Event
) -> tuple[int, str]:
    """Bytes that were right, and how it ended: by an end, a reset, in silence, or because one was
    wrong. Waits for the sender.

    Linux tells of a reset once. Where the thread that sends was told, reading just ends; the socket
    is closed then, which it is not after an end from the other side alone.
    """
    at, how = 0, None
    while how is None:
        at, how = receive_some(sock, number, at)
    closed = (
        how == "end" and sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == TCP_CLOSE
    )
    sender.join()
    return at, "reset" if closed and failed.is_set() else how


def receive_some(sock: socket.socket, number: int, at: int) -> tuple[int, str | None]:
    try:
        data = sock.recv(BLOCK)
    except TimeoutError:
        abort(sock)
        return at, "silent"
    except OSError:
        return at, "reset"
    if not data:
        return at, "end"
    if data != stream(number, at, len(data)):
        abort(sock)
        return at, "wrong"
    return at + len(data), None


def abort(sock: socket.socket) -> None:
    """A reset at once, while other threads use the socket: its descriptor stays (connect to
    AF_UNSPEC, which Python does not offer).
    """
    LIBC.connect(sock.fileno(), struct.pack("=H14x", socket.AF_UNSPEC), 16)


def ready(sock: socket.socket) -> socket.socket:
    sock.settimeout(PATIENCE)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def serve_one(sock: socket.socket, found: Findings) -> None:
    head = b""
    try:
        while len(head) < HEAD.size:
            more = sock.recv(HEAD.size - len(head))
            if not more:
                # Nothing came: somebody looked whether we are there.
                return found.add(truncated=bool(head))
            head += more
    except OSError:
        return found.add(reset=1)
    number, down, up = HEAD.unpack(head)
    found.add(connections=1)
    failed = threading.Event()
    sender = threading.Thread(target=send, args=(sock, number * 2, down, failed))
    sender.start()
    got, how = receive(sock, number * 2 + 1, sender, failed)
    tell(found, number, "upwards", got, how, up)


def tell(found: Findings, number: int, way: str, got: int, how: str, wanted: int) -> None:
    found.judge(got, how, wanted)
    if how in ("wrong", "silent") or (how == "end" and got != wanted):
        print(
            f"connection {number} {way}: {how} after {got} bytes of {wanted}",
            file=sys.stderr,
            flush=True,
        )


def serve(listener: socket.socket, found: Findings) -> None:
    def one(sock: socket.socket) -> None:
        with ready(sock):
            found.add(open=1)
            serve_one(sock, found)
            found.add(open=-1)

    while True:
        try:
            sock = listener.accept()[0]
        except OSError:
            return
        threading.Thread(target=one, args=(sock,), daemon=True).start()


def ask_one(
    address: Address, number: int, down: int, up: int, cut: float | None, found: Findings
) -> None:
    try:
        sock = ready(socket.create_connection(address, 60))
        sock.sendall(HEAD.pack(number, down, up))
    except OSError:
        return found.add(refused=1)
    with sock:
        failed = threading.Event()
        sender = threading.Thread(target=send, args=(sock, number * 2 + 1, up, failed))
        sender.start()
        timer = threading.Timer(cut or 0, abort, (sock,))
        if cut is not None:
            timer.start()
        got, how = receive(sock, number * 2, sender, failed)
        timer.cancel()
        if cut is not None:
            timer.join()
        tell(found, number, "downwards", got, how, down)


def ask(
    address: Address, total: float, found: Findings, most: int = 25, cuts: float = 0.05
) -> None:
    """Connections of up to 2 to the power of `most` bytes each way, a part of them cut, until both
    ends together should have had `total`.
    """
    chance, sent = random.Random(1), 0

    def worker() -> None:
        nonlocal sent
        while True:
            with found.lock:
                # The other end counts what it gets; here it is taken to be as much as comes back.
                if 2 * found.said["bytes"] >= total:
                    return
                found.said["connections"] += 1
                number = found.said["connections"]
                down, up = (int(2 ** chance.uniform(0, most)) for _ in range(2))
                cut = chance.uniform(0, 0.5) if chance.random() < cuts else None
            ask_one(address, number, down, up, cut, found)

    threads = [threading.Thread(target=worker) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def faulty(listener: socket.socket, address: Address, fault: tuple[str, bool] | None) -> None:
    """A proxy that does one thing wrong, once, in one direction of one connection: at its first
    data after byte 100000 of that direction.
    """
    lock, left = threading.Lock(), [fault]

    def relay(one: socket.socket, other: socket.socket, downwards: bool) -> None:
        passed = 0
        try:
            while data := one.recv(BLOCK):
                begin, passed = passed, passed + len(data)
                with lock:
                    mine = (
                        left[0]
                        and left[0][1] == downwards
                        and begin > 100_000
                        and len(data) > 1
                        and left[0][0]
                    )
                    left[0] = None if mine else left[0]
                middle = len(data) // 2
                if mine == "byte":
                    data = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
                elif mine == "lost":
                    data = data[:middle] + data[middle + 1 :]
                elif mine == "twice":
                    data = data + data
                elif mine == "more":
                    other.sendall(data)
                    while more := one.recv(BLOCK):
                        other.sendall(more)
                    data = b"x"
                elif mine == "end":
                    break
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            abort(one)
            abort(other)

    while True:
        try:
            near = listener.accept()[0]
        except OSError:
            return
        far = socket.create_connection(address)
        for pair in ((near, far, False), (far, near, True)):
            threading.Thread(target=relay, args=pair, daemon=True).start()


def check() -> int:
    """Whether every kind of fault is seen, in either direction."""
    blind: list[str | None] = []
    for kind in (None, "byte", "lost", "twice", "more", "end"):
        for downwards in (False, True):
            there, here = Findings(), Findings()
            server, proxy = (socket.create_server(("127.0.0.1", 0), backlog=128) for _ in range(2))
            fault = (kind, downwards) if kind else None
            threading.Thread(target=serve, args=(server, there), daemon=True).start()
            threading.Thread(
                target=faulty, args=(proxy, server.getsockname(), fault), daemon=True
            ).start()
            ask(proxy.getsockname(), 20e6, here, most=22, cuts=0)
            server.shutdown(socket.SHUT_RDWR)
            proxy.shutdown(socket.SHUT_RDWR)
            seen = {what: here.said[what] + there.said[what] for what in ("wrong", "truncated")}
            # A wrong byte is told by the end that it reached; what ended early, too.
            told = (here if downwards else there).said
            good = (
                told["truncated"] == 1
                if kind == "end"
                else told["wrong"] == 1
                if kind
                else not any(seen.values())
            )
            print(
                f"{kind or 'nothing'}, {'downwards' if downwards else 'upwards'}: {seen}:"
                f" {'as it should be' if good else 'NOT SEEN'}"
            )
            blind += [] if good else [kind]
    return 1 if blind else 0


def main() -> None:
    if sys.argv[1] == "check":
        sys.stderr = open(os.devnull, "w", encoding="utf-8")
        sys.exit(check())
    found = Findings()
    if sys.argv[1] == "serve":
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        listener = socket.create_server(("", int(sys.argv[2])), backlog=1024)
        print("ready", flush=True)
        threading.Thread(target=serve, args=(listener, found), daemon=True).start()
        signal.sigwait([signal.SIGTERM])
        # What is on its way may come: a reset that the link lost is told again when a proxy asks
        # whether its peer is there, after 60 s. What is open then is told.
        begin = time.monotonic()
        end = begin + 200
        while found.said["open"] and time.monotonic() < end:
            time.sleep(0.1)
        if time.monotonic() - begin > 5:
            print(
                f"the last connection ended {time.monotonic() - begin:.0f} s after its client",
                file=sys.stderr,
                flush=True,
            )
    else:
        ask((sys.argv[2], int(sys.argv[3])), float(sys.argv[4]), found)
    with found.lock:
        print(json.dumps(found.said), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
