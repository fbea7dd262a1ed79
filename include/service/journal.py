"""The journal of an acting service: every change with its reason, appended and never changed.

An entry is on disk before what it announces is done. A service that was killed in between finds
out from Flink what came of it (``history.news``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from include.files.whole import sync_names
from include.model.errors import SetupError, StoreError
from include.service.clock import Timestamp
from include.service.history import (
    GONE,
    NOT_SENT,
    NOT_TAKEN,
    NOT_UP,
    TAKEN,
    UP,
    ChangeHistory,
    Entry,
    named,
)

FILE = "journal.jsonl"


class ChangeJournal:
    """One file of JSON lines; only the service that holds the lease writes to it."""

    def __init__(self, state: Path) -> None:
        self._path = state / FILE

    def read(self) -> Iterator[Entry]:
        """Every entry, oldest first. Raises StoreError for one that is damaged."""
        if not self._path.is_file():
            return
        with self._path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    values = json.loads(line)
                except ValueError:  # cut off by a crash, or a full disk: nothing was done
                    continue
                try:
                    at, kind = Timestamp(**values.pop("at")), values.pop("kind")
                    values.pop("time", None)
                    entry = Entry(at, kind, values)
                    ChangeHistory().after(entry)  # it says what its kind has to
                except (KeyError, TypeError, AttributeError) as error:
                    raise StoreError(
                        f"{self._path}, line {number} is no entry ({error}); move the file aside "
                        "to begin another, or repair the line"
                    ) from error
                yield entry

    def append(self, entry: Entry) -> None:
        """Write an entry; returns when it is on disk. Raises SetupError, and then it is not.

        The folder has to be there: one that was removed has no service that holds its lease.
        """
        time = f"{datetime.fromtimestamp(entry.at.at_s, UTC):%Y-%m-%dT%H:%M:%SZ}"
        about = {"time": time, "kind": entry.kind, **entry.about, "at": asdict(entry.at)}
        content = json.dumps(about).encode() + b"\n"
        try:
            with self._path.open("a+b", buffering=0) as file:
                self._write(file, content)
        except OSError as error:
            raise SetupError(
                f"{self._path} cannot be written ({error.strerror}), so nothing is changed; "
                "free some space or make the folder writable"
            ) from error

    def _write(self, file: Any, content: bytes) -> None:
        size = file.seek(0, os.SEEK_END)
        try:
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
                content = b"\n" + content  # what a crash has cut off is a line of its own
            if file.write(content) != len(content):
                raise OSError(28, "No space left on device")
            os.fsync(file.fileno())
            if not size:
                sync_names(self._path.parent)
        except OSError:
            with suppress(OSError):
                file.truncate(size)
            raise


def sentence(entry: Entry) -> str:
    """An entry in words, on one line or several."""
    describe = _SENTENCES.get(entry.kind)
    return describe(entry.about) if describe else f"{entry.kind}: {dict(entry.about)}"


def _began(about: Mapping[str, Any]) -> str:
    does = "acts on" if about["really"] else "says what it would ask of"
    return f"{about['controller']} {does} {about['job_name']} (process {about['pid']})"


def _job(about: Mapping[str, Any]) -> str:
    what = "was deployed again as" if about["was"] else "is"
    return f"the job {what} {about['job']} and asks for at most {named(about['bounds'])}"


def _asked(about: Mapping[str, Any]) -> str:
    if about.get("back"):
        return f"goes back to {named(about['asks'])}, as the job is down since the last change"
    return f"asks for {_asks(about)}"


def _asks(about: Mapping[str, Any]) -> str:
    steps = (
        f"{name} {about['before'][name]} -> {count}" + (f" ({why})" if why else "")
        for name, count in sorted(about["asks"].items())
        for why in [about["why"].get(name)]
    )
    return "; ".join(steps) + _cuts(about)


def _cuts(about: Mapping[str, Any]) -> str:
    wanted = about["wanted"]
    cuts = (
        f"\n    {name} does not get the {wanted[name]} that are wanted: {why}"
        for name, why in sorted(about["cuts"].items())
    )
    return "".join(cuts)


def _held(about: Mapping[str, Any]) -> str:
    reasons = "".join(f"\n    {reason}" for reason in about["held"])
    return f"nothing changes, {named(about['wanted'])} wanted:{reasons}{_cuts(about)}"


def _others(about: Mapping[str, Any]) -> str:
    steps = [
        f"{name} {about['was'][name]} -> {most}" for name, most in sorted(about["bounds"].items())
    ]
    steps += [
        f"{name} at least {about['least_was'][name]} -> {least}"
        for name, least in sorted(about.get("least", {}).items())
    ]
    return f"somebody else changed what the job asks for, or Flink began anew: {', '.join(steps)}"


def _ended(about: Mapping[str, Any]) -> str:
    if not about["bounds"]:
        return "ends; the job was never read"
    return (
        f"hands the job back; it asks for at most {named(about['bounds'])}, "
        f"at first it asked for {named(about['found'])}"
    )


_SENTENCES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "began": _began,
    "job": _job,
    "asks": _asked,
    "would": lambda about: f"would ask for {_asks(about)}",
    "no answer": lambda about: f"whether Flink takes it is not known yet: {about['says']}",
    TAKEN: lambda about: f"Flink takes {named(about['asks'])}",
    UP: lambda about: f"{named(about['asks'])} run",
    NOT_UP: lambda about: f"{named(about['asks'])} did not come up, {named(about['runs'])} run",
    NOT_TAKEN: lambda about: f"Flink did not take {named(about['asks'])}",
    NOT_SENT: lambda about: f"{named(about['asks'])} is not asked for after all: {about['why']}",
    GONE: lambda about: f"{named(about['asks'])} is not waited for any more: others changed it",
    "others": _others,
    "held": _held,
    "paused": lambda about: about["why"],
    "resumed": lambda _: "resumed",
    "ended": _ended,
}
