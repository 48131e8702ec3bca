"""Two ends of many connections whose bytes both can make: what arrives must be a prefix of what was sent, and all of it unless there was a reset.

    exact.py serve PORT            exact.py ask SERVER PORT BYTES

A connection begins with 16 bytes: its number, and how much the server sends. Both ways carry noise from a place that the number
chooses (SHA-256 in counter mode, which repeats after 8 MB, so that making it costs little).
"""

import hashlib
import json
import random
import socket
import struct
import sys
import threading

BLOCK = 1 << 16
NOISE = b"".join(hashlib.sha256(struct.pack("<Q", i)).digest() for i in range(8 << 20 >> 5)) * 2
AT_ONCE = 24


def stream(number, at, length):
    """Bytes of a stream from a place on: a window into the noise."""
    place = (number * 1000003 + at) % (8 << 20)
    return NOISE[place:place + length]


def send(sock, number, length):
    at = 0
    while at < length:
        part = stream(number, at, min(BLOCK, length - at))
        sock.sendall(part)
        at += len(part)


def receive(sock, number):
    """Bytes, whether all were right, whether it ended by a reset."""
    at = 0
    while True:
        try:
            data = sock.recv(BLOCK)
        except OSError:
            return at, True, True
        if not data:
            return at, True, False
        if data != stream(number, at, len(data)):
            return at, False, False
        at += len(data)


def reset(sock):
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    except OSError:
        pass


def serve(port):
    listener = socket.create_server(("", port), backlog=1024)
    print("ready", flush=True)

    def one(sock):
        sock.settimeout(120)
        try:
            head = b""
            while len(head) < 16:
                more = sock.recv(16 - len(head))
                if not more:
                    return
                head += more
            number, length = struct.unpack("<QQ", head)
            sender = threading.Thread(target=lambda: finish(sock, number * 2, length))
            sender.start()
            _, right, was_reset = receive(sock, number * 2 + 1)
            if not right:
                print("wrong", number, file=sys.stderr, flush=True)
                reset(sock)
            sender.join()
        except OSError:
            pass
        finally:
            sock.close()

    while True:
        threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()


def finish(sock, number, length):
    try:
        send(sock, number, length)
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def ask(server, port, total):
    lock = threading.Lock()
    said = {"bytes": 0, "connections": 0, "reset": 0, "wrong": 0, "truncated": 0, "refused": 0}
    chance = random.Random(1)

    def worker():
        while True:
            with lock:
                if said["bytes"] >= total:
                    return
                said["connections"] += 1
                number = said["connections"]
                down, up = (int(2 ** chance.uniform(0, 25)) for _ in range(2))
                cut = chance.random() < 0.05
            try:
                sock = socket.create_connection((server, port), 30)
                sock.settimeout(120)
                sock.sendall(struct.pack("<QQ", number, down))
            except OSError:
                with lock:
                    said["refused"] += 1
                continue
            sender = threading.Thread(target=finish, args=(sock, number * 2 + 1, up))
            sender.start()
            if cut:
                timer = threading.Timer(chance.uniform(0, 0.5), reset, (sock,))
                timer.start()
            got, right, was_reset = receive(sock, number * 2)
            sender.join()
            if cut:
                timer.cancel()
            sock.close()
            with lock:
                said["bytes"] += got + (up if right and not was_reset else 0)
                said["wrong"] += not right or got > down
                said["reset"] += was_reset
                said["truncated"] += right and not was_reset and got < down

    threads = [threading.Thread(target=worker) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(said))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        ask(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
