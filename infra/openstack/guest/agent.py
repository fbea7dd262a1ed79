#!/usr/bin/python3 -IS
"""Does in a guest what cloud-init does elsewhere: address, host name, and the user data.

It reads the config drive and executes of a cloud-config what our user data uses: ``packages``
(those that are not installed), ``write_files``, ``runcmd``. Any other key is an error, so that
nothing is passed over in silence. cloud-init starts Python four times, which on an emulated
processor takes longer than all the rest of the boot; docs/openstack.md has both figures.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Any

DRIVE = Path("/run/config-drive")
DEVICE = "/dev/sr0"
ENGINE = "/run/docker.sock"
STATUS = Path("/var/lib/dpkg/status")
KNOWN = ("package_update", "packages", "write_files", "runcmd")
DRIVE_WITHIN_S = 20.0


def main(root: Path = Path("/"), run: Callable[..., Any] = subprocess.run) -> None:
    """Configure the guest; exits with the problem, which the server's console shows."""
    say("the agent runs")
    options = Path("/proc/cmdline").read_text().split()
    settings = dict(option.split("=", 1) for option in options if "=" in option)
    latest = mounted_drive() / "openstack" / "latest"
    say("config drive mounted")
    if "tidebench.fault=deaf" not in options:
        network(json.loads((latest / "network_data.json").read_text()), run)
        say("address set")
        if "tidebench.clock" in settings:
            set_clock(settings["tidebench.clock"])
    name = json.loads((latest / "meta_data.json").read_text())["hostname"]
    Path("/proc/sys/kernel/hostname").write_text(name)
    text = (latest / "user_data").read_text() if (latest / "user_data").is_file() else ""
    execute(parsed(text), root, run)
    say("user data executed")
    if engine_answers():
        say("the engine answers")


def say(what: str) -> None:
    """Print a line on the console with the seconds since boot."""
    uptime = Path("/proc/uptime").read_text().split()[0]
    print(f"tidebench: {what} after {uptime} s", flush=True)


def mounted_drive() -> Path:
    """The config drive. Exits when there is none within DRIVE_WITHIN_S."""
    end_s = time.monotonic() + DRIVE_WITHIN_S
    while not os.path.exists(DEVICE):  # noqa: PTH110 (what this imports is paid for nineteen times)
        if time.monotonic() > end_s:
            sys.exit(f"tidebench: no config drive within {DRIVE_WITHIN_S:g} s")
        time.sleep(0.05)
    DRIVE.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "iso9660", "-o", "ro", DEVICE, DRIVE], check=True)
    return DRIVE


def network(data: Mapping[str, Any], run: Callable[..., Any]) -> None:
    """The IPv4 addresses and routes of the config drive, on the interfaces with these MACs."""
    device_of = {
        (path / "address").read_text().strip(): path.name
        for path in Path("/sys/class/net").iterdir()
    }
    mac_of = {link["id"]: link["ethernet_mac_address"].lower() for link in data["links"]}
    lines = ["link set lo up"]
    for address in data["networks"]:
        device = device_of[mac_of[address["link"]]]
        lines.append(f"link set {device} up")
        if address["type"] != "ipv4":
            continue
        length = ip_network(f"0.0.0.0/{address['netmask']}").prefixlen
        lines.append(f"addr add {address['ip_address']}/{length} dev {device}")
        for route in address.get("routes", []):
            to = ip_network(f"{route['network']}/{route['netmask']}")
            lines.append(f"route add {to} via {route['gateway']} dev {device}")
        # Replace an old hardware address in neighbours' caches at once.
        Path(f"/proc/sys/net/ipv4/conf/{device}/arp_notify").write_text("1")
    run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)
    for address in data["networks"]:
        if address["type"] == "ipv4":
            device = device_of[mac_of[address["link"]]]
            run(["busybox", "arping", "-q", "-U", "-c", "1", "-I", device, address["ip_address"]])


def set_clock(server: str, asks: int = 4) -> None:
    """Set the clock by SNTP from ``host:port``, by the quickest of a few answers.

    The kernel has read an emulated clock, which is off by up to a second.
    """
    import socket
    import struct

    host, _, port = server.partition(":")
    best: tuple[float, float] | None = None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(1.0)
        for _ in range(asks):
            sent_s = time.time()
            try:
                client.sendto(b"\x23" + bytes(47), (host, int(port)))
                answer = client.recv(48)
            except OSError:
                continue
            took_s = time.time() - sent_s
            whole, fraction = struct.unpack("!II", answer[40:48])
            at_s = whole - 2_208_988_800 + fraction / 2**32  # since 1970 instead of 1900
            if best is None or took_s < best[0]:
                best = (took_s, at_s + took_s / 2 - (sent_s + took_s))
    if best is None:
        print(f"tidebench: {server} does not say what time it is", flush=True)
        return
    time.clock_settime(time.CLOCK_REALTIME, time.time() + best[1])
    say(f"clock set by {best[1]:.3f} s, to within {best[0] / 2:.3f} s,")


def parsed(text: str) -> dict[str, Any]:
    """Parse a cloud-config. Exits if it is invalid or needs an unsupported module."""
    if not text.strip():
        return {}
    if not text.startswith("#cloud-config"):
        sys.exit("tidebench: the user data is not a cloud-config")
    import yaml

    config = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}
    if unknown := sorted(set(config) - set(KNOWN)):
        sys.exit(
            f"tidebench: this agent knows no {', '.join(unknown)}; it knows {', '.join(KNOWN)}"
        )
    return dict(config)


def execute(config: Mapping[str, Any], root: Path, run: Callable[..., Any]) -> None:
    """In the order of cloud-init's modules: files, packages, commands."""
    for file in config.get("write_files", []):
        path = root / file["path"].lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.get("content", ""))
        path.chmod(int(str(file.get("permissions", "0644")), 8))
    if absent := missing(config.get("packages", []), root / STATUS.relative_to("/")):
        if config.get("package_update"):
            run(["apt-get", "-qq", "update"], check=True)
        run(["apt-get", "-qq", "install", "-y", *absent], check=True)
    for command in config.get("runcmd", []):
        done = run(command, shell=isinstance(command, str), check=False)
        if done.returncode:
            print(f"tidebench: {command} ended with {done.returncode}", flush=True)


def missing(packages: list[str], status: Path) -> list[str]:
    """Packages that are not installed according to dpkg."""
    if not packages:
        return []
    text = status.read_text() if status.is_file() else ""
    installed = re.findall(r"^Package: (\S+)\nStatus: install ok installed$", text, re.MULTILINE)
    return [package for package in packages if package not in installed]


def engine_answers(within_s: float = 120.0) -> bool:
    """Whether dockerd comes up. One request is enough: it answers when dockerd is ready."""
    import socket

    end_s = time.monotonic() + within_s
    while time.monotonic() < end_s:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(within_s)
            try:
                client.connect(ENGINE)
                client.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
                return b" 200 OK" in client.recv(64)
            except OSError:
                time.sleep(0.2)
    return False


if __name__ == "__main__":
    sys.path.append(
        "/usr/lib/python3/dist-packages"
    )  # of Debian's yaml; without site, a quick start
    main()
