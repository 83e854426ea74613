"""What each of the papers' click tables compares, and what it printed."""

from __future__ import annotations

from dataclasses import dataclass, field

from click_models_pipelines import (
    AVAZU_WEIGHTS,
    BASELINE,
    BATCH_NORM,
    CRITEO_WEIGHTS,
    DLRM,
    DROPOUT,
    LIGHT_DROPOUT,
    NO_FIELD,
    NO_NUMBERS,
    SMALLER,
    l2_name,
)


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
            Pair(BASELINE, l2_name("1e-6"), 95.2, 98.8),
        ),
        "12",
        {
            BASELINE: BASELINE_MOMENTS,
            SMALLER: Moments(0.37383, 0.37374, 4.8, 3.9),
            BATCH_NORM: Moments(0.37286, 0.37268, 7.8, 4.4),
            DROPOUT: Moments(0.37454, 0.37456, 3.9, 3.6),
            l2_name("1e-6"): Moments(0.37475, 0.37459, 6.1, 4.2),
        },
        note="The scan lacks Table 5; its numbers are those of the earlier version of the paper.",
    ),
    Table(
        "6",
        "regularization weight",
        "avazu",
        tuple(
            Pair(BASELINE, l2_name(weight), *printed)
            for weight, printed in zip(
                AVAZU_WEIGHTS,
                ((63.2, 69.3), (82.2, 88.2), (86.6, 92.4), (95.2, 98.8), (98.8, 100.0)),
                strict=True,
            )
        ),
        "13",
        {
            BASELINE: BASELINE_MOMENTS,
            l2_name("3e-7"): Moments(0.37371, 0.37369, 4.8, 4.3),
            l2_name("5e-7"): Moments(0.37419, 0.37411, 5.9, 5.0),
            l2_name("7e-7"): Moments(0.37428, 0.37421, 5.7, 4.4),
            l2_name("1e-6"): Moments(0.37475, 0.37459, 6.1, 4.2),
            l2_name("2e-6"): Moments(0.37562, 0.37547, 5.9, 4.2),
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
            Pair(BASELINE, l2_name(weight), *printed)
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

SIZES = (20_000, 40_000, 80_000, 160_000, 310_000)


def of_size(name: str, n_train: int) -> str:
    """Return the name of a pipeline that is trained on so many rows."""
    return f"{name}, {n_train:,} rows"


BY_SIZE = Table(
    "",
    "DeepFM against a plain perceptron by rows of training",
    "",
    tuple(Pair(of_size("DeepFM", n), of_size("MLP", n)) for n in SIZES),
    note="The validation rows are the same; the smaller sets are parts of the largest one.",
)
"""Not in the papers: how much of the noise is bias, by the length of the one epoch."""
