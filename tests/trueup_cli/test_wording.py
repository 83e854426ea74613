from __future__ import annotations

import warnings

import click
import pytest
from click.testing import CliRunner

from trueup.errors import InvalidInputError, TrueupWarning
from trueup_cli.monitor.base import NAMES as NAMES_OF_MONITOR
from trueup_cli.shell.failures import BadInput, in_options, one_line_failures, refused, translated

NAMES = {
    "y_true": "--target 'click'",
    "y_pred": "--proba 'p'",
    "y_logit": "--logit",
    "labels": "--label",
    "split": "--split",
    "sample_weight": "--weight 'w'",
    "allow_failed": "--allow-failed",
    "loss": "--loss",
}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            InvalidInputError("y_pred must be in [0, 1]", "2.0", "Pass log-odds as y_logit."),
            "--proba 'p' must be in [0, 1]; got 2.0. Pass log-odds as --logit.",
        ),
        (
            InvalidInputError("y_true must be 0 or 1", "2.0", "Pass labels=[negative, positive]."),
            "--target 'click' must be 0 or 1; got 2.0. Pass --label NEGATIVE --label POSITIVE.",
        ),
        (
            InvalidInputError("y_true must hold one type", "objects", "Drop or fix the rows."),
            "--target 'click' must hold one type; got objects. Drop or fix the rows.",
        ),
        (
            InvalidInputError("y_true must be one of ['a']. Fix labels=."),
            "--target 'click' must be one of ['a']. Fix --label.",
        ),
        (InvalidInputError("no file holds y_logit."), "no file holds --logit."),
    ],
)
def test_a_refusal_names_what_the_user_wrote(error, expected):
    assert refused(error, NAMES) == expected


def test_monitoring_names_options_of_init_in_all_its_commands():
    error = InvalidInputError("row_id must be given", "None", "Run init with metric=.")
    assert refused(error, NAMES_OF_MONITOR) == (
        "--row-id must be given; got None. Run init with --metric."
    )
    asked = InvalidInputError("model_uris must be of versions", "'models:/a/1'", "Make one.")
    assert refused(asked, NAMES_OF_MONITOR).startswith("models:/NAME/VERSION must be of versions")


ALL_SPACED = "give --allow-failed None, --split 'hi' or --loss -1"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "a loss is a loss; split=InSample() splits.",
            "a loss is a loss; --split InSample splits.",
        ),
        ("or pass allow_failed=True to go on.", "or pass --allow-failed to go on."),
        ("give allow_failed=None, split='hi' or loss=-1", ALL_SPACED),
        ("Fix split=, or labels= (loss=).", "Fix --split, or --label (--loss)."),
        (
            "Log it, name another seed_key, or pass seed_key=None.",
            "Log it or name another seed_key.",
        ),
        ("no column 'sample_weight', but sample_weight", "no column 'sample_weight', but --weight"),
        ("n_bins=3 and base_rate stay.", "n_bins=3 and base_rate stay."),
    ],
)
def test_arguments_become_options(message, expected):
    assert translated(message, NAMES) == expected


def test_options_of_the_command_need_no_names():
    @click.command()
    @click.option("--min-effect", type=float)
    def compare(min_effect):
        with in_options():
            raise InvalidInputError(f"min_effect must be positive; got {min_effect}. Fix it.")

    result = CliRunner().invoke(compare, ["--min-effect", "-1"])
    assert result.exit_code == 2
    assert result.output == "Error: --min-effect must be positive; got -1.0. Fix it.\n"


def test_warnings_name_options_and_the_hook_is_put_back(capsys):
    before = warnings.showwarning
    with one_line_failures(), in_options(NAMES):
        warnings.warn("Pass y_logit.", TrueupWarning, stacklevel=1)
    assert capsys.readouterr().err == "warning: Pass --logit.\n"
    assert warnings.showwarning is before


def test_other_errors_pass():
    with pytest.raises(KeyError), in_options(NAMES):
        raise KeyError("y_true")
    with pytest.raises(BadInput, match="--logit must"), in_options(NAMES):
        raise InvalidInputError("y_logit must be finite.")
