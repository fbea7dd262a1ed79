"""Tags on a run's resources in a cloud: its run, installation and due end."""

from __future__ import annotations

import math
import socket
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from include.testbeds.live.files import create, live_state

TAG = "tidebench"
LONGEST_TAG = 60


@dataclass(frozen=True, slots=True)
class ResourceTags:
    """``site`` is an installation of Tidebench: two may run the same experiment in one project.

    ``due_s`` is the latest end of the run (seconds since 1970), for other installations.
    """

    run: str
    site: str
    due_s: float = 0.0

    @property
    def tags(self) -> list[str]:
        """Tags of servers, ports and addresses, with the end of the run's id, its digest."""
        return [TAG, f"run-{self.run[-(LONGEST_TAG - 4) :]}", f"site-{self.site}"]

    @property
    def metadata(self) -> dict[str, str]:
        """Full values, on servers."""
        return {
            f"{TAG}.run": self.run,
            f"{TAG}.site": self.site,
            f"{TAG}.due": f"{self.due_s:.0f}",
        }

    @classmethod
    def read(cls, tags: Iterable[str], metadata: Mapping[str, Any]) -> ResourceTags:
        values = {
            kind: metadata.get(f"{TAG}.{kind}")
            or next(
                (tag.removeprefix(f"{kind}-") for tag in tags if tag.startswith(f"{kind}-")), ""
            )
            for kind in ("run", "site")
        }
        try:
            due_s = float(metadata.get(f"{TAG}.due", 0))
        except (TypeError, ValueError):
            due_s = math.inf  # not ours, or somebody has changed it: never due
        return cls(values["run"], values["site"], due_s)


def site() -> str:
    """Name of this installation, created once and kept in the state directory."""
    path = live_state() / "site"
    if not path.is_file():
        host = "".join(
            letter for letter in socket.gethostname() if letter.isalnum() or letter == "-"
        )
        create(path, f"{host[:32]}-{uuid.uuid4().hex[:8]}".encode())
    return path.read_text(encoding="utf-8")
