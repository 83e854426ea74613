"""One run as the pages see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlflow.entities import Run

from trueup_mlflow.compare.seed_runs import PARENT_TAG, SeedRun
from trueup_mlflow.write.items import ROLE_TAG, SEED_TAG, fingerprint_tag

SEED_NAMES = ("seed", SEED_TAG)
"""Parameters and tags that hold the seed of a run, the first one found counts."""


@dataclass(frozen=True)
class StoredRun:
    """A run of a store; times are milliseconds since 1970, metrics their last values."""

    run_id: str
    experiment_id: str
    name: str
    status: str
    start: int
    end: int
    params: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: Mapping[str, float]

    @classmethod
    def of(cls, run: Run) -> StoredRun:
        """Return what the pages need of a run of MLflow."""
        info, data = run.info, run.data
        return cls(
            str(info.run_id),
            str(info.experiment_id),
            str(info.run_name or info.run_id),
            str(info.status),
            int(info.start_time or 0),
            int(info.end_time or 0),
            data.params,
            data.tags,
            data.metrics,
        )

    @property
    def parent(self) -> str | None:
        """Id of the parent run."""
        return self.tags.get(PARENT_TAG)

    @property
    def role(self) -> str | None:
        """What trueup says that the run is."""
        return self.tags.get(ROLE_TAG)

    @property
    def seed(self) -> int | str | None:
        """The training seed, a whole number where the text is one."""
        for name in SEED_NAMES:
            text = self.params.get(name, self.tags.get(name))
            if text is not None:
                return int(text) if text.lstrip("-").isdecimal() else text
        return None

    @property
    def fingerprints(self) -> dict[str, str]:
        """Metric key K -> fingerprint of the rows and the split it was computed from."""
        start = fingerprint_tag("")
        return {
            key.removeprefix(start): value
            for key, value in self.tags.items()
            if key.startswith(start)
        }

    def as_seed_run(self, seed: int | str) -> SeedRun:
        """Return the run as comparisons take it."""
        metrics = dict(self.metrics)
        return SeedRun(
            seed, self.run_id, self.status, self.experiment_id, metrics, self.fingerprints
        )
