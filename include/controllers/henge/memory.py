"""What Henge remembers between two rounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean


@dataclass(frozen=True, slots=True)
class Configuration:
    """Instances of every operator, and the share of the maximal utility seen with them."""

    share: float
    instances: dict[str, int]


@dataclass(frozen=True, slots=True)
class Trial:
    """A reconfiguration whose effect is awaited: what was seen before it."""

    job: str
    utility: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HengeMemory:
    """The state of the cluster's state machine (Fig. 3) and its history.

    ``recent`` holds the utilities of each job in the last rounds, oldest first; a job is known
    once it has one. ``best`` is all that is ever read of the history of configurations.
    """

    act_from_s: float
    converged: bool = False
    heard_s: float | None = None
    """When the statistics were last complete."""
    recent: dict[str, tuple[float, ...]] = field(default_factory=dict)
    wanted: dict[str, int] = field(default_factory=dict)
    """Instances of the operators whose number Henge has set."""
    trial: Trial | None = None
    best: Configuration | None = None
    expected_share: float = 0.0
    """What a drop is measured against while converged."""
    tolerated: tuple[str, ...] | None = None
    """Jobs that missed their SLO when the cluster had converged; None until that is seen."""
    stable_rounds: int = 0
    skipped_until_s: dict[str, float] = field(default_factory=dict)
    """The black list."""
    reduced: tuple[str, ...] = ()
    just_reduced: bool = False

    @property
    def utilities(self) -> dict[str, float]:
        """The utility of every known job, as its mean over the last rounds."""
        return {job: fmean(values) for job, values in self.recent.items()}

    @property
    def baseline(self) -> dict[str, float]:
        """What an action starts from: the mean, or the latest utility where it lies lower.

        After a sudden drop the mean still holds better times, which no action could bring back.
        """
        return {job: min(fmean(values), values[-1]) for job, values in self.recent.items()}

    def with_utilities(self, measured: Mapping[str, float], samples: int) -> HengeMemory:
        """One more utility of each measured job; the others keep what they had."""
        latest = {
            job: (*self.recent.get(job, ()), utility)[-samples:]
            for job, utility in measured.items()
        }
        return replace(self, recent={**self.recent, **latest})

    def with_best(self, share: float, instances: Mapping[str, int], within: float) -> HengeMemory:
        """The configuration joins the history.

        Of configurations whose shares differ by less than ``within``, which is noise, the one
        with fewest instances is the best.
        """
        if self.best is not None:
            gain = share - self.best.share
            smaller = sum(instances.values()) < sum(self.best.instances.values())
            if gain <= within * self.best.share and not (smaller and gain >= -within * share):
                return self
        return replace(self, best=Configuration(share, dict(instances)))

    def skipping(self, job: str, until_s: float) -> HengeMemory:
        """The job is black-listed: reconfigurations pass over it until ``until_s``."""
        return replace(self, skipped_until_s={**self.skipped_until_s, job: until_s})

    def skips(self, job: str, now_s: float) -> bool:
        return now_s < self.skipped_until_s.get(job, now_s)

    def waiting(self, until_s: float) -> HengeMemory:
        """Nothing is done before ``until_s``."""
        return replace(self, act_from_s=max(self.act_from_s, until_s))

    def settled(self, expected_share: float) -> HengeMemory:
        """Converged; a large drop from ``expected_share`` or a further SLO violation ends it."""
        return replace(
            self,
            converged=True,
            expected_share=expected_share,
            tolerated=None,
            trial=None,
            stable_rounds=0,
        )

    def reset(self) -> HengeMemory:
        """All past actions are forgotten: what they taught no longer applies."""
        return HengeMemory(
            act_from_s=self.act_from_s, heard_s=self.heard_s, recent=self.recent, wanted=self.wanted
        )

    def after_reduction(self, jobs: Iterable[str]) -> HengeMemory:
        """The jobs were reduced; another time is only after a reset."""
        return replace(
            self, reduced=(*self.reduced, *jobs), just_reduced=True, trial=None, stable_rounds=0
        )
