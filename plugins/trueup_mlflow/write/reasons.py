"""What another package's failure said, as a part of a sentence of ours."""

from __future__ import annotations


def reason_of(failure: Exception) -> str:
    """Return the message on one line, without the full stop that our sentence sets."""
    return " ".join(str(failure).split()).rstrip(" .")
