"""Faults on demand, from a JSON file that is read again whenever it changes.

    {"nova":    [{"match": "POST .*/servers$", "status": 503, "times": 2, "retry_after": 1}],
     "neutron": [{"match": "GET .*/ports", "delay": 3}, {"match": "PUT .*", "late": 3}],
     "spawn":   [{"match": "host-2", "fail": "abort"}],
     "destroy": [{"match": ".*", "delay": 10}],
     "machine": [{"match": "host-3", "fail": "dead"}, {"match": ".*", "delay": 20}]}

A rule matches "METHOD /path" of a request to keystone, placement, glance, neutron or nova, or the
name of a server that is spawned, destroyed, or whose machine starts. ``delay`` comes before the
work and ``late`` between the work and the answer. ``times`` is how often a rule fires, counted by
each process since the file has changed.
"""

from __future__ import annotations

import json
import os
import re
import threading
from pathlib import Path
from typing import Any

_LOCK = threading.Lock()
_known: dict[str, Any] = {"stamp": None, "rules": {}, "used": {}}


def pick(section: str, text: str) -> dict[str, Any]:
    """The first rule of a section that matches and may still fire; empty if there is none."""
    with _LOCK:
        _read(Path(os.environ.get("TB_FAULTS", "")))
        for place, rule in enumerate(_known["rules"].get(section, [])):
            used = _known["used"].get((section, place), 0)
            if used < rule.get("times", float("inf")) and re.search(rule.get("match", ""), text):
                _known["used"][section, place] = used + 1
                return dict(rule)
    return {}


def _read(path: Path) -> None:
    try:
        stamp = path.stat().st_mtime_ns
        if stamp != _known["stamp"]:
            _known.update(stamp=stamp, rules=json.loads(path.read_text()), used={})
    except OSError:
        _known.update(stamp=None, rules={}, used={})
    except ValueError:
        return  # half written, so keep the previous rules
