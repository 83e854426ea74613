"""Training seeds of one pipeline: the project backend, and what the parent of seeds says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueup.extras import hand_on

if TYPE_CHECKING:
    from trueup_mlflow.seeds.log_seeds import log_seed_summary as log_seed_summary
    from trueup_mlflow.seeds.log_seeds import summary_items as summary_items

__getattr__, __dir__ = hand_on(__name__)
__all__ = __dir__()
