"""What another package's failure said, as a part of a sentence of ours."""

from __future__ import annotations

from trueup.redact import without_credentials


def reason_of(failure: Exception) -> str:
    """Return the message on one line, without the full stop that our sentence sets."""
    return without_credentials(" ".join(str(failure).split())).rstrip(" .")
