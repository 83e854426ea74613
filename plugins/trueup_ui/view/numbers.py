"""Numbers as text: a mean with two digits of its spread, shares as percent."""

from __future__ import annotations

import math

MISSING = "–"
_MOST_DECIMALS = 12


def plain(value: object, digits: int = 4) -> str:
    """Return a number in so many significant digits; what is no finite number is missing.

    Examples
    --------
    >>> plain(0.466012345), plain(None), plain("much"), plain(-0.0)
    ('0.466', '–', '–', '0')
    """
    if not isinstance(value, int | float) or not math.isfinite(value):
        return MISSING
    return f"{value + 0.0:.{digits}g}".replace("-", "−")


def signed(value: object, digits: int = 3) -> str:
    """Return a number with its sign.

    Examples
    --------
    >>> signed(0.00123)
    '+0.00123'
    """
    text = plain(value, digits)
    return text if text == MISSING or text.startswith("−") or text == "0" else f"+{text}"


def percent(value: float | None) -> str:
    """Return a share as whole percent.

    Examples
    --------
    >>> percent(0.384), percent(-0.06)
    ('38%', '−6%')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{round(100.0 * value):d}%".replace("-", "−")


def fixed(value: float | None, decimals: int | None, *, sign: bool = False) -> str:
    """Return a value with so many decimals, or in six significant digits for None.

    Examples
    --------
    >>> fixed(0.466012345, 4), fixed(0.00002, 5, sign=True), fixed(0.5, None)
    ('0.4660', '+0.00002', '0.5')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    if decimals is None:
        return signed(value, 6) if sign else plain(value, 6)
    return f"{value + 0.0:{'+' if sign else ''}.{decimals}f}".replace("-", "−")


def decimals_of(spread: float | None) -> int | None:
    """Return the decimals that show two digits of a spread, None where that is no good form.

    Examples
    --------
    >>> decimals_of(0.00123), decimals_of(12.0), decimals_of(0.0)
    (4, None, None)
    """
    if not spread or not math.isfinite(spread):
        return None
    decimals = 1 - math.floor(math.log10(float(f"{spread:.1e}")))
    return decimals if 0 < decimals <= _MOST_DECIMALS else None


def short(value: object) -> str:
    """Return a parameter as text, a long number in four significant digits.

    Examples
    --------
    >>> short("0.018940361675095763"), short("adam"), short(3)
    ('0.01894', 'adam', '3')
    """
    text = str(value)
    try:
        return plain(float(text)) if "." in text and len(text) > 6 else text
    except ValueError:
        return text
