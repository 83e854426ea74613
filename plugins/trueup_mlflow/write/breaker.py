"""When to leave a store alone: after a write that failed, for a while."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

COOLDOWN = 60.0
"""Seconds for which nothing is written after a failure."""
_MAX_PLACES = 1024


class Breaker:
    """Says where the latest write has failed, so that a hung server costs one timeout.

    Parameters
    ----------
    cooldown : float, default 60.0
        Seconds for which a place is left alone after a failure.
    """

    def __init__(self, cooldown: float = COOLDOWN) -> None:
        self._cooldown = cooldown
        self._failed: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def trip(self, place: str) -> bool:
        """Note a failure; return whether it is the first one of that place."""
        with self._lock:
            is_first = place not in self._failed
            self._failed[place] = time.monotonic()
            self._failed.move_to_end(place)
            while len(self._failed) > _MAX_PLACES:
                self._failed.popitem(last=False)
            return is_first

    def is_open(self, place: str) -> bool:
        """Return whether a place is to be left alone now."""
        with self._lock:
            failed = self._failed.get(place)
        return failed is not None and time.monotonic() - failed < self._cooldown


SILENT = Breaker()
"""The stores that did not answer lately, by their URI."""
