"""Every pipeline of the papers' click tables, at the papers' sizes and at those of a stand-in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from click_models_networks import Design
from click_models_training import Pipeline


def l2_name(weight: str) -> str:
    """Return the name of the pipeline with the printed regularization weight."""
    return f"xDeepFM, L2 {weight}"


BASELINE, DLRM = "xDeepFM", "DLRM"
NO_NUMBERS, NO_FIELD = "xDeepFM, remove dense", "xDeepFM, remove sparse"
SMALLER, BATCH_NORM = "xDeepFM, smaller size", "xDeepFM, batch norm"
DROPOUT, LIGHT_DROPOUT = "xDeepFM, dropout 0.7", "xDeepFM, dropout 0.1"
AVAZU_WEIGHTS = ("3e-7", "5e-7", "7e-7", "1e-6", "2e-6")
CRITEO_WEIGHTS = ("7e-2", "1e-1", "1.5e-1", "2e-1")


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
    note : str
        All this in words, for the report.
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
    note: str


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
    note="Adam at rate 0.002, batches of 256 (DLRM: 128), embeddings of 8 (DLRM: 16), hidden "
    "layers 64-64 (smaller size: 16-16), interaction maps 16-16 (8-8). DLRM's widths are an "
    "eighth of the printed ones, and Adam trains it: SGD hardly moves it in so short an epoch. "
    "The printed regularization weights are multiplied by 1,000 in Table 6 and by 0.01 in Table "
    "19, so that they show an effect.",
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
    note="Adam at rate 0.001, batches of 256, embeddings of 8, hidden layers 256-256 (smaller "
    "size: 64-64), interaction maps 128-128 (32-32). DLRM: SGD at rate 0.1, batches of 128, "
    "embeddings of 16, a perceptron 512-256-64 of the numbers.",
)
"""The defaults of the authors' base models where the papers name none."""


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
            yield replace(base, name=l2_name(weight), l2=float(f"{scale * float(weight):.3g}"))


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
