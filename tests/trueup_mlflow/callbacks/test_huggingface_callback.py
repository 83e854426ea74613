from __future__ import annotations

import warnings

import mlflow
import numpy as np
import pytest
import torch

import trueup
from trueup.errors import TrueupWarning

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from trueup_mlflow.callbacks.huggingface import TrueupCallback  # noqa: E402

N = 60


class Rows(torch.utils.data.Dataset):
    def __init__(self, labels):
        rng = np.random.default_rng(0)
        self.tokens = torch.tensor(rng.integers(1, 20, (N, 5)))
        self.labels = labels

    def __len__(self):
        return N

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.labels[index]}


def trainer(tmp_path, n_labels, labels, callback, kind="SequenceClassification"):
    config = transformers.BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        num_labels=n_labels,
    )
    torch.manual_seed(0)
    arguments = transformers.TrainingArguments(
        str(tmp_path / "out"),
        num_train_epochs=1,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=["none"],
        use_cpu=True,
        disable_tqdm=True,
        per_device_eval_batch_size=16,
    )
    rows = Rows(labels)
    return transformers.Trainer(
        getattr(transformers, f"BertFor{kind}")(config),
        arguments,
        train_dataset=rows,
        eval_dataset=rows,
        callbacks=[callback],
    )


def labels(n_labels):
    rng = np.random.default_rng(1)
    if n_labels == 1:
        return torch.tensor(rng.normal(size=N), dtype=torch.float32)
    return torch.tensor(rng.integers(0, n_labels, N))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_labels", [1, 2, 3])
def test_each_evaluation_is_logged(client, tmp_path, n_labels):
    y = labels(n_labels)
    with mlflow.start_run() as run:
        training = trainer(tmp_path, n_labels, y, TrueupCallback())
        training.train()
        training.predict(training.eval_dataset)
        own = training.evaluate()["eval_loss"]
    loss = "mean_squared_error" if n_labels == 1 else "log_loss"
    metrics = client.get_run(run.info.run_id).data.metrics
    assert metrics[f"eval_{loss}"] == pytest.approx(own, rel=1e-5)
    scores = training.predict(training.eval_dataset).predictions.astype(float)
    if n_labels == 1:
        expected = trueup.evaluate(y.double().numpy(), scores[:, 0], loss=loss)
    else:
        scores = scores[:, 1] - scores[:, 0] if n_labels == 2 else scores
        expected = trueup.evaluate(y.numpy(), y_logit=scores)
    assert metrics[f"calibrated_eval_{loss}"] == pytest.approx(expected.calibrated, rel=1e-12)


def test_several_labels_a_row_say_what_to_do_and_training_goes_on(client, tmp_path):
    y = torch.tensor(np.random.default_rng(1).integers(0, 3, (N, 5)))
    callback = TrueupCallback()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with mlflow.start_run():
            training = trainer(tmp_path, 3, y, callback, kind="TokenClassification")
            training.train()
    messages = [str(warning.message) for warning in seen if warning.category is TrueupWarning]
    assert len(messages) == 1
    assert "one label a row" in messages[0]
