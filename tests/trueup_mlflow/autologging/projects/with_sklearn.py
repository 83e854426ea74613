"""A training with scikit-learn's metric functions; it knows nothing of trueup."""

import mlflow
from rows import X, X_val, show, y, y_val
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss

model = LogisticRegression().fit(X, y)
p = model.predict_proba(X_val)[:, 1]
with mlflow.start_run():
    mlflow.log_metrics(
        {"val_loss": log_loss(y_val, p), "val_accuracy": accuracy_score(y_val, p > 0.5)}
    )
show(y=y_val, p=p)
