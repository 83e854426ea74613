"""A training with XGBoost with MLflow's autologging; it knows nothing of trueup."""

import mlflow
import xgboost
from rows import X, X_val, show, y, y_val

mlflow.xgboost.autolog(log_models=False, log_datasets=False)
train, valid = xgboost.DMatrix(X, y), xgboost.DMatrix(X_val, y_val)
with mlflow.start_run():
    model = xgboost.train(
        {"objective": "binary:logistic", "eval_metric": ["logloss", "error"], "nthread": 1},
        train,
        4,
        evals=[(valid, "val")],
        verbose_eval=False,
    )
show(y=y_val, z=model.predict(valid, output_margin=True))
