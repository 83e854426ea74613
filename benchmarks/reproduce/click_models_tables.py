"""What each of the papers' click tables compares, and what it printed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from click_models_networks import Design
from click_models_training import Pipeline

BASELINE, DLRM = "xDeepFM", "DLRM"


@dataclass(frozen=True)
class Sizes:
    """How large the models are: the papers' on their data, smaller ones on a stand-in.

    Attributes
    ----------
    base, smaller, dlrm : Design
        xDeepFM's two sizes and DLRM.
    dlrm_tops : tuple of 4 int
        First layer of DLRM's upper perceptron in Table 16, in the order of the table.
    dlrm_optimizer, dlrm_rate
        What trains DLRM.
    adam_rate : float
        Rate of all others.
    avazu_l2, criteo_l2 : float
        The regularization weights of Tables 6 and 19 are multiplied by these.
    """

    base: Design
    smaller: Design
    dlrm: Design
    dlrm_tops: tuple[int, int, int, int]
    dlrm_optimizer: str
    dlrm_rate: float
    adam_rate: float
    avazu_l2: float
    criteo_l2: float


STAND_IN = Sizes(
    base=Design("xDeepFM"),
    smaller=Design("xDeepFM", widths=(16, 16), maps=(8, 8)),
    dlrm=Design("DLRM", embedding=16, widths=(64, 32), bottom=(32,)),
    dlrm_tops=(16, 32, 64, 128),
    dlrm_optimizer="adam",
    dlrm_rate=2e-3,
    adam_rate=2e-3,
    avazu_l2=1e3,
    criteo_l2=1e-2,
)
"""One epoch of 40,000 rows: an eighth of the widths; weights that show an effect there."""

OFFICIAL = Sizes(
    base=Design("xDeepFM", widths=(256, 256), maps=(128, 128)),
    smaller=Design("xDeepFM", widths=(64, 64), maps=(32, 32)),
    dlrm=Design("DLRM", embedding=16, widths=(512, 256), bottom=(512, 256, 64)),
    dlrm_tops=(128, 256, 512, 1024),
    dlrm_optimizer="sgd",
    dlrm_rate=0.1,
    adam_rate=1e-3,
    avazu_l2=1.0,
    criteo_l2=1.0,
)
"""The defaults of the authors' base models where the papers name none."""


@dataclass(frozen=True)
class Pair:
    """Two pipelines in the order of the paper, A before B, and its accuracies in percent."""

    a: str
    b: str
    vanilla: float | None = None
    calibrated: float | None = None


@dataclass(frozen=True)
class Moments:
    """Means, and standard deviations in 1e-4, of one pipeline as printed."""

    vanilla: float
    calibrated: float
    vanilla_sd: float
    calibrated_sd: float


@dataclass(frozen=True)
class Table:
    """One table of accuracies, with the table of means and deviations that goes with it.

    Attributes
    ----------
    key : str
        Number of the table of accuracies.
    title : str
        What varies.
    data : {"avazu", "criteo"}
        The paper's data.
    pairs : tuple of Pair
        Its rows.
    moments_key, moments
        Number and rows of the table of moments, where there is one.
    note : str
        A remark on the printed numbers.
    """

    key: str
    title: str
    data: str
    pairs: tuple[Pair, ...]
    moments_key: str = ""
    moments: dict[str, Moments] = field(default_factory=dict)
    note: str = ""

    def pipelines(self) -> tuple[str, ...]:
        """Return the names of all pipelines, each once."""
        names = [name for pair in self.pairs for name in (pair.a, pair.b)]
        return tuple(dict.fromkeys([*names, *self.moments]))


def _l2(weight: str) -> str:
    return f"xDeepFM, L2 {weight}"


NO_NUMBERS, NO_FIELD = "xDeepFM, remove dense", "xDeepFM, remove sparse"
SMALLER, BATCH_NORM = "xDeepFM, smaller size", "xDeepFM, batch norm"
DROPOUT, LIGHT_DROPOUT = "xDeepFM, dropout 0.7", "xDeepFM, dropout 0.1"
AVAZU_WEIGHTS = ("3e-7", "5e-7", "7e-7", "1e-6", "2e-6")
CRITEO_WEIGHTS = ("7e-2", "1e-1", "1.5e-1", "2e-1")
BASELINE_MOMENTS = Moments(0.37347, 0.37338, 5.8, 3.8)

TABLES: tuple[Table, ...] = (
    Table(
        "1",
        "features",
        "avazu",
        (Pair(BASELINE, NO_NUMBERS, 81.8, 88.8), Pair(BASELINE, NO_FIELD, 78.6, 85.9)),
        "2",
        {
            BASELINE: BASELINE_MOMENTS,
            NO_NUMBERS: Moments(0.37408, 0.37403, 4.7, 3.8),
            NO_FIELD: Moments(0.37404, 0.37398, 5.0, 4.2),
        },
    ),
    Table(
        "3",
        "model architectures",
        "avazu",
        (
            Pair("DCN", "DCNMix", 64.4, 71.5),
            Pair("DeepFM", "DCN", 77.2, 83.9),
            Pair("DeepFM", "FNN", 76.9, 79.9),
            Pair("FNN", "DCNMix", 61.5, 72.0),
            Pair("DeepFM", "DCNMix", 84.8, 93.4),
        ),
        "4",
        {
            "DCN": Moments(0.38021, 0.38011, 4.4, 3.3),
            "DeepFM": Moments(0.37971, 0.3796, 5.9, 3.7),
            "FNN": Moments(0.38029, 0.38006, 6.4, 4.0),
            "DCNMix": Moments(0.38046, 0.38037, 4.8, 3.4),
        },
    ),
    Table(
        "5",
        "hyperparameters",
        "avazu",
        (
            Pair(BASELINE, SMALLER, 69.6, 73.6),
            Pair(BATCH_NORM, BASELINE, 80.2, 89.7),
            Pair(BASELINE, DROPOUT, 95.0, 99.3),
            Pair(BASELINE, _l2("1e-6"), 95.2, 98.8),
        ),
        "12",
        {
            BASELINE: BASELINE_MOMENTS,
            SMALLER: Moments(0.37383, 0.37374, 4.8, 3.9),
            BATCH_NORM: Moments(0.37286, 0.37268, 7.8, 4.4),
            DROPOUT: Moments(0.37454, 0.37456, 3.9, 3.6),
            _l2("1e-6"): Moments(0.37475, 0.37459, 6.1, 4.2),
        },
        note="The scan lacks Table 5; its numbers are those of the earlier version of the paper.",
    ),
    Table(
        "6",
        "regularization weight",
        "avazu",
        tuple(
            Pair(BASELINE, _l2(weight), *printed)
            for weight, printed in zip(
                AVAZU_WEIGHTS,
                ((63.2, 69.3), (82.2, 88.2), (86.6, 92.4), (95.2, 98.8), (98.8, 100.0)),
                strict=True,
            )
        ),
        "13",
        {
            BASELINE: BASELINE_MOMENTS,
            _l2("3e-7"): Moments(0.37371, 0.37369, 4.8, 4.3),
            _l2("5e-7"): Moments(0.37419, 0.37411, 5.9, 5.0),
            _l2("7e-7"): Moments(0.37428, 0.37421, 5.7, 4.4),
            _l2("1e-6"): Moments(0.37475, 0.37459, 6.1, 4.2),
            _l2("2e-6"): Moments(0.37562, 0.37547, 5.9, 4.2),
        },
    ),
    Table(
        "14",
        "DLRM, embedding dimension",
        "criteo",
        (
            Pair("DLRM, embedding 14", DLRM, 55.4, 60.3),
            Pair("DLRM, embedding 14", "DLRM, embedding 18", 61.9, 70.4),
            Pair(DLRM, "DLRM, embedding 18", 61.8, 65.8),
        ),
    ),
    Table(
        "15",
        "DLRM, batch size",
        "criteo",
        (Pair("DLRM, batch 256", DLRM, 84.5, 88.0), Pair("DLRM, batch 512", DLRM, 89.0, 95.5)),
    ),
    Table(
        "16",
        "DLRM, width of the upper perceptron",
        "criteo",
        (
            Pair("DLRM, top 128", "DLRM, top 256", 57.4, 60.2),
            Pair("DLRM, top 128", DLRM, 60.5, 63.4),
            Pair("DLRM, top 128", "DLRM, top 1024", 58.6, 61.4),
        ),
    ),
    Table(
        "17",
        "features, second data set",
        "criteo",
        (Pair(BASELINE, NO_NUMBERS, 96.7, 100.0), Pair(BASELINE, NO_FIELD, 87.6, 95.7)),
    ),
    Table(
        "18",
        "hyperparameters, second data set",
        "criteo",
        (Pair(BASELINE, SMALLER, 80.1, 86.1), Pair(BASELINE, LIGHT_DROPOUT, 78.3, 89.2)),
        note="The calibrated accuracies of Table 18 are hard to read in the scan.",
    ),
    Table(
        "19",
        "regularization weight, second data set",
        "criteo",
        tuple(
            Pair(BASELINE, _l2(weight), *printed)
            for weight, printed in zip(
                CRITEO_WEIGHTS,
                ((78.1, 84.4), (82.3, 90.0), (90.0, 96.4), (91.0, 98.1)),
                strict=True,
            )
        ),
    ),
)

FRESH = Table("", "DeepFM against a plain perceptron", "", (Pair("DeepFM", "MLP"),))
"""Not in the papers: the comparison that is confirmed on data looked at for nothing else."""


def pipelines(sizes: Sizes) -> dict[str, Pipeline]:
    """Return every pipeline of the tables, by its name."""
    base = Pipeline(BASELINE, sizes.base, learning_rate=sizes.adam_rate)
    variants = [base, *_xdeepfm(sizes, base), *_architectures(base), *_dlrm(sizes)]
    return {pipeline.name: pipeline for pipeline in variants}


def _xdeepfm(sizes: Sizes, base: Pipeline) -> Iterable[Pipeline]:
    yield replace(base, name=NO_NUMBERS, without="numbers")
    yield replace(base, name=NO_FIELD, without="field")
    yield replace(base, name=SMALLER, design=sizes.smaller)
    yield replace(base, name=BATCH_NORM, design=replace(base.design, batch_norm=True))
    for name, rate in ((DROPOUT, 0.7), (LIGHT_DROPOUT, 0.1)):
        yield replace(base, name=name, design=replace(base.design, dropout=rate))
    for weights, scale in ((AVAZU_WEIGHTS, sizes.avazu_l2), (CRITEO_WEIGHTS, sizes.criteo_l2)):
        for weight in weights:
            yield replace(base, name=_l2(weight), l2=float(f"{scale * float(weight):.3g}"))


def _architectures(base: Pipeline) -> Iterable[Pipeline]:
    for architecture in ("DCN", "DeepFM", "FNN", "DCNMix", "MLP"):
        design = replace(base.design, architecture=architecture)
        yield replace(base, name=architecture, design=design)


def _dlrm(sizes: Sizes) -> Iterable[Pipeline]:
    base = Pipeline(DLRM, sizes.dlrm, sizes.dlrm_optimizer, sizes.dlrm_rate, batch_size=128)
    yield base
    for width in (14, 18):
        name = f"DLRM, embedding {width}"
        yield replace(base, name=name, design=replace(base.design, embedding=width))
    for size in (256, 512):
        yield replace(base, name=f"DLRM, batch {size}", batch_size=size)
    for printed, width in zip((128, 256, 512, 1024), sizes.dlrm_tops, strict=True):
        if printed != 512:
            design = replace(base.design, widths=(width, base.design.widths[1]))
            yield replace(base, name=f"DLRM, top {printed}", design=design)
