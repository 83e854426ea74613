"""Which of two pipelines is better, how sure that is, and how many more seeds would settle it.

Numbers go in, a decision comes out. A *pipeline* is everything that leads from a seed to a model;
its values are one metric per seed, and lower is better unless said otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.extras import hand_on

if TYPE_CHECKING:
    from trueup.decide.both_metrics import BothMetrics as BothMetrics
    from trueup.decide.both_metrics import compare_both as compare_both
    from trueup.decide.both_metrics import order_note as order_note
    from trueup.decide.compare import BestOf as BestOf
    from trueup.decide.compare import compare as compare
    from trueup.decide.compare import compare_many as compare_many
    from trueup.decide.reduction import Reduction as Reduction
    from trueup.decide.reduction import variance_reduction as variance_reduction
    from trueup.decide.row_bootstrap import RowInterval as RowInterval
    from trueup.decide.seeds_needed import SeedsNeeded as SeedsNeeded
    from trueup.decide.seeds_needed import required_seeds as required_seeds
    from trueup.decide.verdict import Comparison as Comparison
    from trueup.decide.win_rate import Proportion as Proportion
    from trueup.decide.win_rate import metric_accuracy as metric_accuracy
    from trueup.decide.win_rate import paired_win_rate as paired_win_rate

__getattr__, __dir__ = hand_on(__name__)
__all__ = __dir__()
