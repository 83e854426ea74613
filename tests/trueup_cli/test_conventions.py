"""What all commands have in common: help, names of options, results as JSON."""

from __future__ import annotations

from collections import defaultdict

import click
import pytest

from trueup_cli.app import app

OTHER_NAMES = {  # that an option may have only beside the name that all commands share
    "--experiment": "--experiment-name",
    "--format": "--json",
    "--out": "--output",
    "--plot": "--figure",
    "--run-id": "--log-to-mlflow",
    "--labels-column": "--target",
    "--time-column": "--time",
    "--jobs": "--workers",
    "--seed": "--random-state",
    "--tracking-store": "--tracking-uri",
}
PRINTS_NO_RESULT = {"ui", "report", "monitor report", "monitor watch", "monitor init"}
"""A server, paths of a file that was written, a line a file for ever, and the URI of a model."""


def commands(group=app, path=()):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands())
EVERY = pytest.mark.parametrize("name", COMMANDS)


def options_of(command):
    return [param for param in command.params if isinstance(param, click.Option)]


def names_of(command):
    return {name for option in options_of(command) for name in option.opts if not option.hidden}


def test_the_tree_holds_every_command():
    assert {"evaluate", "resample", "monitor run", "tune report"} < set(COMMANDS)


@EVERY
def test_help_has_an_example_and_the_exit_codes(name):
    text = " ".join((COMMANDS[name].help or "").split())
    assert f"Example: trueup {name} " in f"{text} "
    assert "Exit code" in text
    assert ": 0 " in text.partition("Exit code")[2]
    assert "2 " in text.partition("Exit code")[2]


@EVERY
def test_an_example_names_only_options_of_the_command(name):
    command = COMMANDS[name]
    example = " ".join((command.help or "").partition("Example: ")[2].split())
    used = {word for word in example.split() if word.startswith("--")}
    assert used <= names_of(command)


@EVERY
def test_an_option_has_the_name_that_all_share(name):
    for option in options_of(COMMANDS[name]):
        for other in set(option.opts) & set(OTHER_NAMES):
            assert OTHER_NAMES[other] in option.opts, f"{other} of {name}"


def test_an_option_of_one_name_is_of_one_type_everywhere():
    kinds = defaultdict(lambda: defaultdict(list))
    for name, command in COMMANDS.items():
        for option in options_of(command):
            for text in option.opts:
                kinds[text][option.is_flag, option.type.name == "boolean"].append(name)
    assert {text: dict(found) for text, found in kinds.items() if len(found) > 1} == {}


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - PRINTS_NO_RESULT))
def test_every_result_can_be_had_as_json(name):
    assert "--json" in names_of(COMMANDS[name])


@EVERY
def test_what_is_logged_to_a_new_run_can_be_told_the_store(name):
    names = names_of(COMMANDS[name])
    if names & {"--experiment-name", "--log-to-mlflow"}:
        assert "--tracking-uri" in names
    if "--log-to-mlflow" in names:
        assert "--experiment-name" in names
