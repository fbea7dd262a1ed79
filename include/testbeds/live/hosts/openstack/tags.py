"""The tags on everything that a run holds in a cloud: whose it is, and when it is due to end."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from include.testbeds.live.files import live_state

TAG = "tidebench"
LONGEST_TAG = 60


@dataclass(frozen=True, slots=True)
class ResourceTags:
    """``site`` is an installation of Tidebench: two may run the same experiment in one project.

    ``due_s`` (seconds since 1970) is when the run will be over at the latest, for whoever can see
    the server and not the run.
    """

    run: str
    site: str
    due_s: float = 0.0

    @property
    def tags(self) -> list[str]:
        """What servers, ports and addresses are found by. The end of a run's id is its digest."""
        return [TAG, f"run-{self.run[-(LONGEST_TAG - 4) :]}", f"site-{self.site}"]

    @property
    def metadata(self) -> dict[str, str]:
        """The same in full, on servers."""
        return {
            f"{TAG}.run": self.run,
            f"{TAG}.site": self.site,
            f"{TAG}.due": f"{self.due_s:.0f}",
        }

    @classmethod
    def read(cls, tags: Iterable[str], metadata: Mapping[str, Any]) -> ResourceTags:
        """From metadata, and from tags where there is none."""
        of = {
            kind: metadata.get(f"{TAG}.{kind}")
            or next(
                (tag.removeprefix(f"{kind}-") for tag in tags if tag.startswith(f"{kind}-")), ""
            )
            for kind in ("run", "site")
        }
        return cls(of["run"], of["site"], float(metadata.get(f"{TAG}.due", 0)))


def site() -> str:
    """The name of this installation: made once, kept in the state directory."""
    path = live_state() / "site"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".site.{uuid.uuid4().hex[:8]}")
        host = "".join(one for one in socket.gethostname() if one.isalnum() or one == "-")
        beside.write_text(f"{host[:32]}-{uuid.uuid4().hex[:8]}", encoding="utf-8")
        try:
            path.hardlink_to(beside)  # whole, and only when nobody was quicker
        except FileExistsError:
            pass
        finally:
            beside.unlink()
    return path.read_text(encoding="utf-8")
