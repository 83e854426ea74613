"""No credential survives, and nothing else is touched."""

from __future__ import annotations

import time
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.errors import InvalidInputError, TrueupWarning
from trueup.redact import without_credentials
from trueup.user_warning import warn_user

SECRET = "hunTer2"


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:hunTer2@host/db",
        "postgresql+psycopg2://me:/hunTer2/@host:5432/db",
        "postgresql://me:a/hunTer2@b@host/db",
        "postgresql://me:?hunTer2#@host/db",
        "mysql://:hunTer2@host",
        "redis://me@corp:hunTer2@host",
        "https://hunTer2@host/path",
        "val_https://me:hunTer2@host_log_loss",
        "2https://hunTer2@host",
        "https://hunTer2@host:8000/path@x",
        "s3://bucket/a?X-Amz-Signature=hunTer2&b=1",
        "https://a.blob.core.windows.net/c?sv=1&sig=hunTer2",
        "https://host/?password=hunTer2",
        "https://host/?db_password=hunTer2",
        "host=h password=hunTer2 dbname=d",
        "password='hunTer2 and more'",
        "AccountKey=hunTer2==;EndpointSuffix=x",
        "AWS_SECRET_ACCESS_KEY=hunTer2",
        "API-KEY=hunTer2",
        '{"password": "hunTer2"}',
        "{'api_key': 'hunTer2'}",
        "trueup tune --token hunTer2",
        "Authorization: Bearer hunTer2",
        "(sqlite) postgresql://me:hunTer2@host/db: timed out. See https://docs.example.com/a",
    ],
)
def test_secret_is_hidden(text):
    cleaned = without_credentials(text)
    assert SECRET not in cleaned
    assert "***" in cleaned
    assert without_credentials(cleaned) == cleaned


@pytest.mark.parametrize(
    "text",
    [
        "models:/click@champion",
        "http://127.0.0.1:5000/#/experiments/1",
        "sqlite:////tmp/mlflow.db",
        "postgresql://me@host/db",
        "abfss://container@account.dfs.core.windows.net/a",
        "max_tokens=100, n_keys=3, bypass=1",
        "token must be text; got 3.",
        "mail me@example.com: at 12:30",
        "--passes 3",
    ],
)
def test_other_text_is_left(text):
    assert without_credentials(text) == text


@given(
    password=st.text(
        st.characters(min_codepoint=33, max_codepoint=126, exclude_characters='"<>'), min_size=1
    )
)
def test_every_printable_password_of_a_url_is_hidden(password):
    assert without_credentials(f"x://me:{password}@host/db") == "x://me:***@host/db"


@pytest.mark.parametrize(
    "part", ["a://", "a://:", "password=", "token-", '"token":', "--a-", "'", "authorization: "]
)
def test_no_text_takes_long(part):
    start = time.process_time()
    without_credentials(part * (200_000 // len(part)))
    assert time.process_time() - start < 5.0


def test_errors_and_warnings_of_trueup_are_clean():
    url = "postgresql://me:hun/Ter2@host/db"
    assert "Ter2" not in str(InvalidInputError(f"storage must exist; got {url!r}."))
    with pytest.warns(TrueupWarning) as caught:
        warn_user(f"{url} gave no answer")
    assert "Ter2" not in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TrueupWarning, match=r"me:\*\*\*@host"):
            warn_user(url)
