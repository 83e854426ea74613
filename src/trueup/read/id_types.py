"""Whether the files of one call agree about what their ids are."""

from __future__ import annotations

from pathlib import Path

from trueup.errors import InvalidInputError

ID_TYPES = ("integer", "text")


class IdTypes:
    """What the ids of each file are: integers in all rows, or text.

    Text that is how an integer is written down counts as an integer.

    Parameters
    ----------
    expected : {"integer", "text"}, optional
        What the user says that they are. Text may be integers in some files; the id of a row does
        not depend on it.

    Raises
    ------
    InvalidInputError
        If it is neither.
    """

    def __init__(self, expected: str | None = None) -> None:
        if expected is not None and expected not in ID_TYPES:
            raise InvalidInputError(
                f"id_type must be one of {', '.join(ID_TYPES)}",
                repr(expected),
                "Leave it out where all files agree.",
            )
        self._expected = expected
        self._are_integers: dict[Path, bool] = {}

    def add(self, file: Path, are_integers: bool, n: int) -> None:
        """Add the ids of n rows of a file."""
        if n:
            self._are_integers[file] = self._are_integers.get(file, True) and are_integers

    def check(self) -> None:
        """Refuse files that hold only integers beside files that hold other text."""
        integers = [file for file, whether in self._are_integers.items() if whether]
        texts = [file for file, whether in self._are_integers.items() if not whether]
        if texts and self._expected == "integer":
            raise InvalidInputError(
                "row_id must be integers, as id_type says",
                f"text in {texts[0]}",
                "Pass text as id_type if it is meant.",
            )
        if integers and texts and self._expected is None:
            raise InvalidInputError(
                "files must agree about the type of row_id",
                f"integers in {integers[0]} and text in {texts[0]}",
                "Pass text as id_type if it is meant.",
            )
