"""Nearest neighbours: the error of an operational row is that of the reference rows around it."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from trueup.monitoring.inputs import FloatArray
from trueup.monitoring.panel.importance import CLIP

_MIN_NEIGHBOURS = 5


def neighbour_weights(reference: FloatArray, operational: FloatArray) -> FloatArray:
    """Return how often each reference row is among the nearest ones of an operational row.

    Parameters
    ----------
    reference, operational : arrays of shape (n, d) and (m, d)
        Rows standardised by the reference; they are clipped at 5 standard deviations.

    Returns
    -------
    array of shape (n,)
        Weights >= 0 with sum 1: ``weights @ errors`` is the mean over operational rows of the mean
        error of their ``max(5, sqrt(n))`` nearest reference rows.
    """
    n = len(reference)
    neighbours = min(n, max(_MIN_NEIGHBOURS, round(n**0.5)))
    tree = cKDTree(np.clip(reference, -CLIP, CLIP))
    _, index = tree.query(np.clip(operational, -CLIP, CLIP), k=neighbours)
    counts = np.bincount(np.ravel(index), minlength=n)
    return np.asarray(counts / counts.sum())
