"""The trial that ``train`` gets in finals and confirmation: all but the choice of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import optuna
from optuna.trial import FixedTrial, FrozenTrial

_OWN = "trueup:"


class RaceTrial(FixedTrial):
    """A ``FixedTrial`` with the study, the number and the user attributes of the search.

    Callbacks of libraries ask for them. Reports are ignored, and ``should_prune`` says no.

    Parameters
    ----------
    params : mapping of str to value
        The parameters of the configuration.
    study : optuna.Study
        The study of the search.
    origin : FrozenTrial, optional
        Its trial in the search; None for a configuration that the search never met, whose number is
        then the one that comes next.
    trial_id : int, optional
        Where the storage keeps this training.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        study: optuna.Study,
        origin: FrozenTrial | None = None,
        trial_id: int | None = None,
    ) -> None:
        number = len(study.get_trials(deepcopy=False)) if origin is None else origin.number
        super().__init__(dict(params), number=number)
        self.study: Any = study
        self.storage: Any = study._storage
        self._trial_id = trial_id
        self.given: dict[str, Any] = {}
        """User attributes that this training has set."""
        if origin is not None:
            kept = origin.user_attrs.items()
            self._user_attrs.update({key: v for key, v in kept if not key.startswith(_OWN)})

    @classmethod
    def away(cls, trial: RaceTrial, study: Any) -> RaceTrial:
        """Return a copy that can travel, without storage and with facts in place of the study."""
        copy = cls.__new__(cls)
        FixedTrial.__init__(copy, dict(trial._params), number=trial.number)
        copy.study, copy.storage, copy._trial_id = study, None, None
        copy._user_attrs, copy.given = dict(trial._user_attrs), {}
        return copy

    @property
    def relative_params(self) -> dict[str, Any]:
        """Parameters that a sampler drew together: none, since all are fixed."""
        return {}

    def set_user_attr(self, key: str, value: Any) -> None:
        """Keep an attribute of this training."""
        super().set_user_attr(key, value)
        self.given[key] = value

    @property
    def violates(self) -> bool:
        """Whether this training broke a constraint."""
        return any(value > 0.0 for value in self.constraints.values())
