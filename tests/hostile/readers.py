"""What trueup reads back: honest bytes, how to read them, and how to spoil them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from tests.hostile.mutations import damaged, forged_json, forged_npz
from tests.trueup_cli.tune_script import SPACE

from trueup import CrossFit, HoldOut, InSample, calibrators, summaries
from trueup_cli.tune.space import load_space

_DOUBLINGS = "".join(f"a{i + 1}: &a{i + 1} [*a{i}, *a{i}]\n" for i in range(40))
_VALUES = (
    *("", "1", "-1", "0", ".nan", "-.inf", "1e400", "9" * 400, "9" * 5000, "0x10", "1_0", "true"),
    *("yes", "null", "'0'", "2020-01-01", "[]", "[[1]]", "{a: 1}", "[1, 1]", "&a [*a]", "*b", "<<"),
    *("!!python/object/apply:os.system ['x']", "!!binary x", "\t", "{", "'", "%YAML 9.9", "--- a"),
    *("[" * 300, "{a: " * 300, "\x00", "\ufeff", "\ud800", f"1\na0: &a0 [1]\n{_DOUBLINGS}"),
)
Change = Callable[[bytes, Random], bytes]


@dataclass(frozen=True)
class Target:
    """One kind of stored object.

    Attributes
    ----------
    name : str
        Of the class.
    honest : bytes
        As trueup wrote it.
    read : callable
        From bytes to anything; it uses what it has read.
    changes : tuple of callables
        Ways to spoil the bytes.
    room : int
        Bytes of memory that a reader may take whatever the size of its input.
    """

    name: str
    honest: bytes
    read: Callable[[bytes], Any]
    changes: tuple[Change, ...] = (damaged, forged_npz, forged_npz)
    room: int = 0


def quick_targets(folder: Path) -> Iterator[Target]:
    """Yield summaries and calibrators, which take a second to make."""
    yield from _summaries()
    yield from _calibrators(folder)


def slow_targets(folder: Path) -> Iterator[Target]:
    """Yield check models, which are trained first."""
    from trueup.monitoring import ConsensusEstimator, OneStepCheckModel

    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    y = x[:, 0] + rng.normal(size=60)
    checks = (
        ("OneStepCheckModel", OneStepCheckModel(epochs=2, hidden=4), y),
        ("ConsensusEstimator", ConsensusEstimator(), y),
        ("ConsensusEstimator of 0/1", ConsensusEstimator(), (y > 0).astype(float)),
    )
    for name, check, labels in checks:
        path = folder / "check.npz"
        check.fit(x, expit(x[:, 0]), labels).save(path)
        yield Target(name, path.read_bytes(), _from_file(type(check).load, path))


def _from_file(load: Callable[[Path], Any], path: Path) -> Callable[[bytes], Any]:
    def read(data: bytes) -> Any:
        path.write_bytes(data)
        return load(path)

    return read


def _summaries() -> Iterator[Target]:
    rng = np.random.default_rng(0)
    n = 300
    y, p = rng.integers(0, 2, n), rng.uniform(0.1, 0.9, n)
    more = {"row_id": np.arange(n), "fields": {"site": rng.integers(0, 3, n)}}
    for kind, split, options in (
        (summaries.LogLossSummary, CrossFit(), more),
        (summaries.BrierSummary, InSample(), {"sample_weight": rng.random(n)}),
        (summaries.SquaredErrorSummary, HoldOut(0.3), {"row_id": np.arange(n)}),
        (summaries.PoissonSummary, InSample(), {}),
    ):
        summary = kind(split)
        summary.update(y, p, **options)
        yield Target(kind.__name__, summary.to_bytes(), lambda d: summaries.from_bytes(d).compute())


def space_target(folder: Path) -> Target:
    """Return the space of ``trueup tune``, which a person writes by hand."""
    read = _from_file(load_space, folder / "space.yaml")
    return Target("space of tune", SPACE.encode(), read, (damaged, _space), 1 << 20)


def _space(_data: bytes, rng: Random) -> bytes:
    """Return a space of which one value is odd, or YAML that is none."""
    key, value = rng.choice(("type", "low", "high", "step", "log", "choices")), rng.choice(_VALUES)
    kind = rng.choice(("float", "int", "categorical"))
    return rng.choice(
        (
            f"x: {{type: {kind}, low: 0, high: 1, {key}: {value}}}",
            f"x: {{type: {kind}, {key}: {value}}}",
            f"{value}: {{type: float, low: 0, high: 1}}",
            f"x: {value}",
            value,
        )
    ).encode(rng.choice(("utf-8", "utf-8", "utf-16")), "replace")


def _calibrators(folder: Path) -> Iterator[Target]:
    rng = np.random.default_rng(0)
    n = 400
    margin, site = rng.normal(size=n), rng.integers(0, 4, n).astype(str)
    y = (rng.random(n) < expit(margin)).astype(int)
    fields, few = {"site": site, "age": rng.normal(size=n)}, np.array([0.0, 0.3, 1.0])
    for calibrator in (
        calibrators.ShiftCalibrator(),
        calibrators.PlattCalibrator(),
        calibrators.TemperatureCalibrator(),
        calibrators.IsotonicCalibrator(),
        calibrators.HistogramCalibrator(5),
        calibrators.ILPSCalibrator(),
        calibrators.FieldOffsetCalibrator(),
        calibrators.NeuralCalibrator(epochs=1, hidden=(4,), embedding=2),
        calibrators.Guarded(calibrators.IsotonicCalibrator(), confidence_level=0.5),
    ):
        yield _calibrator(calibrator.fit(expit(margin), y, fields=fields), folder, fields, few)
    p = softmax(rng.normal(size=(n, 3)), axis=1)
    shift = calibrators.ShiftCalibrator().fit(p, np.arange(n) % 3)
    yield _calibrator(shift, folder, fields, p)


def _calibrator(calibrator: Any, folder: Path, fields: dict[str, Any], p: Any) -> Target:
    calibrator.save(folder)
    few = {name: column[: len(p)] for name, column in fields.items()}

    def read(data: bytes) -> Any:
        document, arrays = _unpacked(data)
        (folder / "calibrator.json").write_bytes(document)
        (folder / "calibrator.npz").write_bytes(arrays)
        return calibrators.load_calibrator(folder).predict_proba(p, fields=few)

    stored = [(folder / f"calibrator.{ending}").read_bytes() for ending in ("json", "npz")]
    name = type(calibrator).__name__ + " of 3 classes" * (p.ndim == 2)
    changes = (_in_document(damaged), _in_document(forged_json), _in_arrays(damaged))
    return Target(
        name, _packed(*stored), read, (*changes, _in_document(forged_json), _in_arrays(forged_npz))
    )


def _packed(document: bytes, arrays: bytes) -> bytes:
    return len(document).to_bytes(4, "little") + document + arrays


def _unpacked(data: bytes) -> tuple[bytes, bytes]:
    end = 4 + int.from_bytes(data[:4], "little")
    return data[4:end], data[end:]


def _in_document(change: Change) -> Change:
    def changed(data: bytes, rng: Random) -> bytes:
        document, arrays = _unpacked(data)
        return _packed(change(document, rng), arrays)

    return changed


def _in_arrays(change: Change) -> Change:
    """Spoil the arrays, and forge the digest that the document holds."""

    def changed(data: bytes, rng: Random) -> bytes:
        document, arrays = _unpacked(data)
        spoilt = change(arrays, rng)
        parts = json.loads(document) | {"arrays": blake2b(spoilt, digest_size=16).hexdigest()}
        return _packed(json.dumps(parts).encode(), spoilt)

    return changed


def temporary_folder() -> Path:
    """Return a folder in memory where there is one: each trial writes its files."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
