"""NannyML's DLE itself, in its own environment, on the trials of the consensus suite.

    python benchmarks/nannyml_dle.py export --data FOLDER --trials 2 --seed 2 --to TRIALS
    NANNYML_PYTHON benchmarks/nannyml_dle.py estimate --to TRIALS

NannyML pins packages that trueup does not live with. The first command writes rows, predictions and
the estimate of ``DirectLossEstimator``; the second one, in an environment with nannyml, compares.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np


def export(folder: Path, trials: int, seed: int, to: Path) -> None:
    """Write the held-out trials of each specification as ``.npz`` files."""
    import torch
    from consensus_specifications import SPECIFICATIONS, Network, draw

    from trueup.monitoring.panel.direct_loss import DirectLossEstimator

    torch.set_num_threads(1)
    to.mkdir(exist_ok=True, parents=True)
    for specification in SPECIFICATIONS:
        data = draw(specification, folder, trials, seed)
        for index in range(trials):
            x, y, x_op = data.x[index], data.y[index], data.x_op[index]
            half = len(y) // 2
            model = Network(index).fit(x[:half], y[:half])
            f, f_op = model.predict(x[half:]), model.predict(x_op)
            direct = DirectLossEstimator().fit(x[half:], f, (y[half:] - f) ** 2)
            ours = direct.squared_errors(x_op, f_op).mean()
            name = f"{specification.replace(':', '_')}_{index}.npz"
            np.savez(to / name, x=x[half:], f=f, y=y[half:], x_op=x_op, f_op=f_op, ours=ours)


def estimate(to: Path, out: Path) -> None:
    """Run NannyML on the trials and write how far the two are apart."""
    os.environ["NML_DISABLE_USAGE_LOGGING"] = "1"
    warnings.simplefilter("ignore")
    import nannyml
    import pandas as pd

    def frame(x: np.ndarray, f: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame(x, columns=[f"x{k}" for k in range(x.shape[1])]).assign(f=f)

    apart = []
    for path in sorted(to.glob("*.npz")):
        trial = np.load(path)
        reference = frame(trial["x"], trial["f"]).assign(y=trial["y"])
        dle = nannyml.DLE(
            feature_column_names=[name for name in reference if name.startswith("x")],
            y_pred="f",
            y_true="y",
            metrics=["mse"],
            chunk_number=1,
        )
        dle.fit(reference)
        found = dle.estimate(frame(trial["x_op"], trial["f_op"])).to_df()
        theirs, ours = float(found["mse", "value"].iloc[-1]), float(trial["ours"])
        apart.append(abs(theirs - ours) / max(theirs, ours))
    out.write_text(
        "# NannyML's DLE and `DirectLossEstimator`\n\n"
        "`nannyml_dle.py export --data FOLDER --to TRIALS`, then, in an environment with nannyml, "
        "`nannyml_dle.py estimate --to TRIALS`.\n\n"
        f"nannyml {nannyml.__version__} on {len(apart)} held-out trials of the consensus suite: "
        f"relative difference of the two estimates, median {np.median(apart):.1e}, largest "
        f"{max(apart):.1e}. The suite's column of direct loss estimation is NannyML's.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["export", "estimate"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--to", type=Path, required=True, help="Folder of the trials.")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    asked = parser.parse_args()
    if asked.what == "export":
        export(asked.data, asked.trials, asked.seed, asked.to)
    else:
        estimate(asked.to, asked.out)


if __name__ == "__main__":
    main()
