"""Credentials taken out of every text that leaves: messages, tags, parameters, notes, logs.

It is a net under the callers, none of which has to know whether a text holds a secret: where it
can't tell, it hides too much rather than too little.
"""

from __future__ import annotations

import re

HIDDEN = "***"

# A password may hold "/", ":", "?" and "@" as typed, so that it ends at the last "@" of the word.
# One slash is what a path makes of two.
# The lengths are limited so that no text, however it was made, takes more than linear time.
_USER_AND_PASSWORD = re.compile(
    r'([A-Za-z][A-Za-z0-9+.-]{0,40}:/{1,2}[^\s:/"<>]{0,256}):[^\s"<>]{0,4096}@'
)
_TOKEN_AS_USER = re.compile(r'(https?://)[^\s:/@"<>]{1,4096}@', re.IGNORECASE)
_SECRET = (
    r"(?:password|passwd|pwd|passphrase|pass|secret|token|api[_-]?key|access[_-]?key|account[_-]?key"
    r"|secret[_-]?key|private[_-]?key|signature|sig|credentials?)"
)
_QUERY_OR_SETTING = re.compile(
    rf"(?<![A-Za-z0-9])((?:[A-Za-z0-9]{{1,40}}[_-]){{0,6}}{_SECRET}=)"
    r"""(?:"[^"]{0,4096}"|'[^']{0,4096}'|[^\s&;"'<>]{1,4096})""",
    re.IGNORECASE,
)
_QUOTED_ENTRY = re.compile(
    rf"""((["'])(?:[A-Za-z0-9]{{1,40}}[_-]){{0,6}}{_SECRET}\2\s{{0,8}}:\s{{0,8}})"""
    r"""(?:"[^"]{0,4096}"|'[^']{0,4096}')""",
    re.IGNORECASE,
)
_FLAG = re.compile(
    rf"(?<!\S)(--(?:[A-Za-z0-9]{{1,40}}-){{0,6}}{_SECRET}\s{{1,8}})[^\s-]\S{{0,4096}}",
    re.IGNORECASE,
)
_AUTHORIZATION = re.compile(
    r"(\bauthorization[\"']?\s{0,8}[:=]\s{0,8}[\"']?(?:basic|bearer|token)\s{1,8})[^\s\"']{1,4096}",
    re.IGNORECASE,
)


def without_credentials(text: str) -> str:
    """Return a text in which passwords, tokens and keys read ``***``.

    Found are the user information of URLs, settings such as ``password=``, ``token=`` and
    ``api_key=`` in queries and connection strings, the same names as keys of JSON and as flags of a
    command, and ``Authorization`` headers. Cleaning a clean text changes nothing. A secret that
    stands alone looks like any other word.

    Examples
    --------
    >>> without_credentials("no answer from postgresql://me:pa/ss@host/db?sslmode=require")
    'no answer from postgresql://me:***@host/db?sslmode=require'
    >>> without_credentials("https://host/store?token=abc&team=7")
    'https://host/store?token=***&team=7'
    """
    if ":/" in text:
        text = _USER_AND_PASSWORD.sub(rf"\1:{HIDDEN}@", text)
        text = _TOKEN_AS_USER.sub(rf"\1{HIDDEN}@", text)
    text = _QUERY_OR_SETTING.sub(rf"\1{HIDDEN}", text)
    text = _QUOTED_ENTRY.sub(rf'\1"{HIDDEN}"', text)
    text = _FLAG.sub(rf"\1{HIDDEN}", text)
    return _AUTHORIZATION.sub(rf"\1{HIDDEN}", text)
