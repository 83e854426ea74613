"""A training with LightGBM with MLflow's autologging; it knows nothing of trueup."""

import lightgbm
import mlflow
from rows import X, X_val, show, y, y_val

mlflow.lightgbm.autolog(log_models=False, log_datasets=False)
train = lightgbm.Dataset(X, y)
valid = lightgbm.Dataset(X_val, y_val, reference=train)
with mlflow.start_run():
    model = lightgbm.train(
        {
            "objective": "binary",
            "metric": ["binary_logloss", "auc"],
            "verbose": -1,
            "num_threads": 1,
        },
        train,
        4,
        valid_sets=[valid],
        valid_names=["val"],
    )
show(y=y_val, p=model.predict(X_val))
