"""The time for guests, by SNTP (RFC 4330), from the clock of this machine.

An emulated real-time clock is off by up to a second, and durations of items are between clocks.
"""

from __future__ import annotations

import socket
import struct
import time

PACKET = struct.Struct("!BBbb11I")
UNIX_EPOCH_S = 2_208_988_800
"""Seconds from 1900, where NTP begins, to 1970."""
ANSWER = 0o44
"""No leap second to come, version 4, from a server."""


def main(address: str, port: str) -> None:
    """Answer until the process ends."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, int(port)))
        while True:
            asked, client = server.recvfrom(PACKET.size)
            if len(asked) == PACKET.size:
                server.sendto(answer(asked, time.time()), client)


def answer(asked: bytes, received_s: float) -> bytes:
    """Answer to a request received at ``received_s`` seconds since 1970."""
    originate = PACKET.unpack(asked)[13:15]
    received = stamp(received_s)
    return PACKET.pack(
        ANSWER, 1, 0, -20, 0, 0, 0, *received, *originate, *received, *stamp(time.time())
    )


def stamp(at_s: float) -> tuple[int, int]:
    """Seconds since 1900, and the fraction in units of 2^-32 s."""
    whole = int(at_s)
    return whole + UNIX_EPOCH_S, int((at_s - whole) * 2**32)
