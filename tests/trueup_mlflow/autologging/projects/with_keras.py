"""A training with Keras 3 on torch; it knows nothing of trueup."""

import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import mlflow
from rows import X, X_val, show, y, y_val

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
model.compile("sgd", loss="binary_crossentropy", metrics=["accuracy"])
with mlflow.start_run():
    history = model.fit(X, y, validation_data=(X_val, y_val), epochs=2, verbose=0).history
    for step in range(2):
        mlflow.log_metrics({key: history[key][step] for key in ("val_loss", "val_accuracy")}, step)
show(y=y_val, p=model.predict(X_val, verbose=0)[:, 0])
