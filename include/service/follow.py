"""Follows what one controller of a shadow advises, within limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from include.service.act import Actor, Wish
from include.service.clock import Timestamp
from include.service.guard import Permission
from include.service.history import named
from include.service.reading import JobReading
from include.service.record import Told
from include.service.shadow import Advised


class Follower:
    """From the first entry of the journal, when it is entered, to the last.

    ``told`` gets a line whenever something else is asked for, held or cut.
    """

    def __init__(self, actor: Actor, every_s: float, told: Told) -> None:
        self.actor, self._every_s, self._told = actor, every_s, told
        self._said: list[str] = []

    def __enter__(self) -> Follower:
        self.actor.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.actor.end()

    def follow(self, reading: JobReading, age_s: float, advised: Sequence[Advised]) -> None:
        """One step from a reading of ``age_s`` seconds ago, and what was last advised."""
        wish = wish_of(advised, reading.at_s - self._every_s)  # the next may be a poll late
        verdict = self.actor.step(reading, Timestamp.now().before(age_s), wish)
        lines = list(lines_of(verdict, really=self.actor.mandate.really))
        for line in lines if lines != self._said else ():
            self._told(line)
        self._said = lines


def wish_of(advised: Sequence[Advised], at_s: float) -> Wish:
    """What is advised and held at that time."""
    rows = [row for row in advised if not row.failed and at_s <= row.holds_until_s]
    counts = {row.operator: row.wanted for row in rows}
    return Wish(counts, {row.operator: row.because or row.reason for row in rows})


def lines_of(verdict: Permission, *, really: bool) -> Iterator[str]:
    """What a terminal says of a step; nothing when all is as it should be."""
    for reason in verdict.held:
        yield f"nothing changes: {reason}"
    for name, why in sorted(verdict.cuts.items()):
        yield f"{name} does not get what is wanted: {why}"
    if verdict.asks:
        yield f"{'asks' if really else 'would ask'} for {named(verdict.asks)}"
