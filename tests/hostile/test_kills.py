"""A study on PostgreSQL whose processes are killed resumes with what it lacks, and no more."""

from __future__ import annotations

import pytest
from tests.hostile.kills import killed_study


@pytest.mark.slow
@pytest.mark.services
def test_a_killed_study_resumes_with_as_many_configurations_as_asked(postgresql_url, tmp_path):
    assert killed_study(postgresql_url, tmp_path, seed=0) == []
