"""A word of warning where the vanilla and the calibrated metric rank two pipelines differently."""

from __future__ import annotations

from trueup.decide.verdict import Comparison


def order_note(vanilla: Comparison, calibrated: Comparison) -> str:
    """Say whether the two metrics disagree on which pipeline is better.

    Parameters
    ----------
    vanilla, calibrated : Comparison
        The same runs, compared on either metric.

    Returns
    -------
    str
        Empty where both differences have one sign, else a sentence with the difference of the bias
        costs.

    Notes
    -----
    The bias cost of a run is vanilla - calibrated, hence the difference of the bias costs is the
    difference of the differences. Where it turns the order, the pipelines differ in their mean
    calibration, which the calibrated metric takes out on purpose.

    Examples
    --------
    >>> from trueup.comparison import compare, order_note
    >>> vanilla = compare({0: 0.41, 1: 0.42}, {0: 0.44, 1: 0.45})
    >>> order_note(vanilla, vanilla)
    ''
    """
    if vanilla.difference * calibrated.difference >= 0.0:
        return ""
    cost = vanilla.difference - calibrated.difference
    return (
        "vanilla and calibrated metric disagree on the order: the pipelines differ in mean "
        f"calibration, with a bias cost of candidate - baseline of {cost:+.3g}"
    )
