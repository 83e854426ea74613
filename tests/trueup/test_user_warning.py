from __future__ import annotations

import warnings
from functools import partial

import pytest

from trueup.errors import TrueupWarning
from trueup.user_warning import pass_over, warn_user

CALLS = "def call(function, message):\n    function(message)\n"


def called_from(name, function):
    """Return a function that calls another one from a module of the given name."""
    namespace = {"__name__": name}
    exec(compile(CALLS, f"{name}.py", "exec"), namespace)
    return partial(namespace["call"], function)


@pytest.mark.parametrize(
    "name", ["trueup.evaluation.evaluate", "trueup_mlflow.write.writer", "mlflow.client"]
)
def test_warning_points_out_of_trueup_and_its_hosts(name):
    pass_over("mlflow")
    call = called_from(name, called_from("sklearn.metrics._classification", warn_user))
    outside = called_from("mine", call)
    with pytest.warns(TrueupWarning, match="text") as seen:
        outside("text")
    assert (seen[0].filename, seen[0].lineno) == ("mine.py", 2)


@pytest.mark.parametrize("name", ["trueups", "mlflow_faculty", "user.mlflow"])
def test_name_that_only_starts_like_a_host_is_the_users(name):
    with pytest.warns(TrueupWarning) as seen:
        called_from(name, warn_user)("")
    assert seen[0].filename == f"{name}.py"


def test_filters_of_the_users_module_are_obeyed():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", module="mine")
        called_from("mine", warn_user)("")
