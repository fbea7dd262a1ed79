"""A service that acts on the Flink of a test, step by step."""

from __future__ import annotations

from dataclasses import replace

from include.service.act import Actor, Wish
from include.service.clock import Timestamp
from include.service.journal import ChangeJournal, sentence
from tests.service.acting_world import limits_of, mandate


class Acting:
    """One actor, which wants ``counts``; ten seconds pass before a step."""

    def __init__(self, flink, connect, state, *, really=True, timeout_s=5.0, **limits):
        self.flink, self.state, self.counts = flink, state, {"map": 3}
        given = {"between_changes_s": 0, "respect_others_s": 3600, "wait_after_failure_s": 3600}
        self.client, self.ended = connect(timeout_s=timeout_s), False
        may = mandate(state, really=really, limits=limits_of(**{**given, **limits}))
        self.actor = Actor(may, self.client, ends=lambda: self.ended)
        self.actor.read_journal()

    def step(self, *, meanwhile=lambda: None, **changed):
        """``meanwhile`` happens between the reading and the step."""
        self.flink.world.advance(10)
        wish = Wish(self.counts, {"map": "the queue grows"})
        reading = replace(self.client.reading("orders"), **changed)
        meanwhile()
        return self.actor.step(reading, Timestamp.now(), wish)

    @property
    def kinds(self):
        return [entry.kind for entry in ChangeJournal(self.state).read()]

    @property
    def told(self):
        return [sentence(entry) for entry in ChangeJournal(self.state).read()]


def requests(flink):
    return [path for method, path in flink.asked if method == "PUT"]
