"""CPU and memory of hosts and containers, read from the kernel: quick, and without the daemon."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


def cpu_s(host: int, container: str = "") -> float | None:
    """CPU seconds of a host, or one of its containers, so far; None when it is gone."""
    used = _number(_group("cpuacct", host, container) / "cpuacct.usage")
    return None if used is None else used / 1e9


def memory_mb(host: int, container: str = "") -> float | None:
    """Memory in use, without the part of the file cache that is given back when needed."""
    group = _group("memory", host, container)
    used = _number(group / "memory.usage_in_bytes")
    if used is None:
        return None
    return max(0, used - _inactive(group)) / 2**20


def _inactive(group: Path) -> int:
    try:
        lines = (group / "memory.stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(one.split()[1]) for one in lines if one.startswith("total_inactive_file")), 0)


def _group(controller: str, host: int, container: str) -> Path:
    prefix = os.environ.get("TIDEBENCH_LIVE_PREFIX") or "tb"
    return ROOT / controller / prefix / f"h{host}" / container


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
