#!/usr/bin/env python3
"""A network link in software: two network namespaces, joined with a delay, losses and a rate.

  link.py --between NS1 NS2 [--delay MS] [--loss SHARE] [--rate MBIT] [--queue MS] [--mtu N] [--seed N]

Each namespace, which exists already, gets an interface link0, with the addresses 10.77.0.1 and
10.77.0.2. MS is one way; a rate of 0 is as fast as this program. Packets beyond a queue of --queue
milliseconds are lost, as in a switch.

Says "ready" when packets flow; on SIGTERM it prints how many
packets and bytes it took and lost, and ends. Needs root and /dev/net/tun.
"""

import argparse
import collections
import ctypes
import fcntl
import json
import os
import random
import select
import signal
import struct
import subprocess
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def enter(path):
    """os.setns came with Python 3.12."""
    with open(path) as namespace:
        if LIBC.setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)


def tun(namespace, address, mtu):
    """An open TUN device in the namespace, up and with the address."""
    enter("/run/netns/" + namespace)
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"link0", IFF_TUN | IFF_NO_PI))
    for words in (f"addr add {address}/24 dev link0", f"link set link0 mtu {mtu} up"):
        subprocess.run(["ip", *words.split()], check=True)
    enter(f"/proc/{os.getppid()}/ns/net")
    return device


class Direction:
    """Packets on their way from one device to the other."""

    def __init__(self, source, sink, options, seed):
        self.source, self.sink, self.options = source, sink, options
        self.random = random.Random(seed)
        self.flying = collections.deque()  # (when it arrives, packet)
        self.free = 0.0  # when the link has sent what it took
        self.taken = self.bytes = self.lost = self.dropped = 0

    def take(self, now):
        for _ in range(64):
            try:
                packet = os.read(self.source, 65536)
            except BlockingIOError:
                return
            self.taken += 1
            self.bytes += len(packet)
            if self.random.random() < self.options.loss:
                self.lost += 1
            elif self.free - now > self.options.queue / 1000:
                self.dropped += 1
            else:
                rate = self.options.rate * 1e6
                self.free = max(now, self.free) + (len(packet) * 8 / rate if rate else 0)
                self.flying.append((self.free + self.options.delay / 1000, packet))

    def deliver(self, now):
        while self.flying and self.flying[0][0] <= now:
            try:
                os.write(self.sink, self.flying.popleft()[1])
            except OSError:  # the other side has no room
                self.dropped += 1

    def count(self):
        return {"packets": self.taken, "bytes": self.bytes, "lost": self.lost, "dropped": self.dropped}


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("--between", nargs=2, required=True)
    for name, value in (("delay", 0), ("loss", 0), ("rate", 0), ("queue", 100)):
        parser.add_argument("--" + name, type=float, default=value)
    for name, value in (("mtu", 1500), ("seed", 1)):
        parser.add_argument("--" + name, type=int, default=value)
    return parser.parse_args()


def main():
    options = parsed()
    first, second = (tun(name, f"10.77.0.{i}", options.mtu) for i, name in enumerate(options.between, 1))
    ways = [Direction(first, second, options, options.seed), Direction(second, first, options, options.seed + 1)]
    running = [True]
    signal.signal(signal.SIGTERM, lambda *_: running.clear())
    print("ready", flush=True)
    while running:
        now = time.monotonic()
        for way in ways:
            way.deliver(now)
        due = [way.flying[0][0] for way in ways if way.flying]
        wait = max(0, min(due) - time.monotonic()) if due else 0.2
        ready, _, _ = select.select([first, second], [], [], wait)
        for way in ways:
            if way.source in ready:
                way.take(time.monotonic())
    print(json.dumps([way.count() for way in ways]), flush=True)


main()
