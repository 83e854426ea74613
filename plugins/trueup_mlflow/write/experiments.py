"""How a run of ours is told from others by a person: its experiment's kind and its description."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

KIND_TAG = "mlflow.experimentKind"
MODEL_DEVELOPMENT = "custom_model_development"
"""What MLflow's page calls model training: it then opens with metrics, not in the GenAI view."""
NOTE_TAG = "mlflow.note.content"


def mark_as_model_training(client: Any, experiment_id: str) -> None:
    """Let the page of an experiment open with metrics, unless somebody has chosen its kind.

    Parameters
    ----------
    client : MlflowClient
        Client of the store; a failure is of no consequence.
    experiment_id : str
        The experiment.
    """
    with suppress(Exception):
        if KIND_TAG not in client.get_experiment(experiment_id).tags:
            client.set_experiment_tag(experiment_id, KIND_TAG, MODEL_DEVELOPMENT)
