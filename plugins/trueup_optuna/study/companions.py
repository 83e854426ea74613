"""The studies beside a study: its finals, its confirmation and its curves.

They are found by name, and a study that was deleted leaves them behind. So study and companions
hold the same random identity, and those of another study are left alone and never read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

import optuna
from optuna.storages import BaseStorage

from trueup.user_warning import warn_user

IDENTITY = "trueup:identity"
_HOME = "trueup:companion:"
_TOLD: WeakKeyDictionary[BaseStorage, set[str]] = WeakKeyDictionary()


def pin_identity(study: optuna.Study) -> None:
    """Give a study the identity that tells its companions from those of a namesake."""
    if IDENTITY not in study.user_attrs:
        study.set_user_attr(IDENTITY, uuid4().hex)


def companion(study: optuna.Study, name: str) -> optuna.Study | None:
    """Return the companion of a study, None where there is none."""
    kept = study.user_attrs
    if _HOME + name not in kept:  # whoever makes one says so, before it holds anything
        return None
    for full_name in _names(study, name, kept):
        found = _load(study, full_name)
        if found is not None and _belongs(found, kept):
            return found
    _tell_missing(study, name, kept[_HOME + name])
    return None


def open_companion(
    study: optuna.Study, name: str, pruner: optuna.pruners.BasePruner | None = None
) -> optuna.Study:
    """Return the companion of a study, made where there is none.

    It is called ``<study>::<name>``; where a deleted namesake has left a study of that name, a part
    of the identity follows, and a warning names what was left.
    """
    kept = study.user_attrs
    for full_name in _names(study, name, kept):
        found = optuna.create_study(
            study_name=full_name,
            storage=study._storage,
            direction=study.direction,
            pruner=optuna.pruners.NopPruner() if pruner is None else pruner,
            sampler=optuna.samplers.RandomSampler(seed=0),
            load_if_exists=True,
        )
        if _belongs(found, kept):
            _remember(study, name, found)
            return found
        _tell_stale(study, full_name)
    raise AssertionError("a name that holds the identity is nobody else's")


def _names(study: optuna.Study, name: str, kept: Mapping[str, Any]) -> tuple[str, str]:
    plain = f"{study.study_name}::{name}"
    return plain, f"{plain}::{kept.get(IDENTITY, '')[:12]}"


def _load(study: optuna.Study, full_name: str) -> optuna.Study | None:
    try:
        return optuna.load_study(
            study_name=full_name,
            storage=study._storage,
            sampler=optuna.samplers.RandomSampler(seed=0),
        )
    except KeyError:
        return None


def _belongs(found: optuna.Study, kept: Mapping[str, Any]) -> bool:
    """Say whether a companion is this study's; one without trials is for whoever comes first."""
    identity, ours = found.user_attrs.get(IDENTITY), kept.get(IDENTITY)
    if identity is None and ours is not None:
        return not found.get_trials(deepcopy=False)
    return bool(identity == ours)


def _remember(study: optuna.Study, name: str, found: optuna.Study) -> None:
    identity = study.user_attrs.get(IDENTITY)
    if identity is not None and IDENTITY not in found.user_attrs:
        found.set_user_attr(IDENTITY, identity)
    if study.user_attrs.get(_HOME + name) != found.study_name:
        study.set_user_attr(_HOME + name, found.study_name)


def _tell_stale(study: optuna.Study, full_name: str) -> None:
    _tell(
        study,
        full_name,
        f"study {full_name!r} belongs to a study that was deleted, or to another one of the same "
        f"name: it is ignored. Remove it with optuna.delete_study(study_name={full_name!r}, "
        "storage=...).",
    )


def _tell_missing(study: optuna.Study, name: str, home: str) -> None:
    """Say that a study once had this companion: ``optuna.copy_study`` leaves them behind."""
    wanted = f"{study.study_name}::{name}"
    _tell(
        study,
        wanted,
        f"study {study.study_name!r} had its {name} in {home!r}, which isn't beside it: it was "
        "deleted, or this is a copy that was made without. Copy it as well, with "
        f"optuna.copy_study(from_study_name={home!r}, to_study_name={wanted!r}, ...).",
    )


def _tell(study: optuna.Study, about: str, message: str) -> None:
    told = _TOLD.setdefault(study._storage, set())
    if about not in told:
        told.add(about)
        warn_user(message)
