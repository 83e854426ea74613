"""Files of rows that nobody meant: CSV text, compressed or not, and parquet of every type."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from tests.hostile.mutations import damaged
from tests.hostile.readers import Change, Target

from trueup import InSample, evaluate, evaluate_files
from trueup.errors import TrueupError
from trueup.read.csv_files import Role
from trueup.read.files import LIMIT_VARIABLE
from trueup.read.tables import read_columns
from trueup_mlflow.monitor.batch.tables import read_table

ROLES: Mapping[str, Role] = {"y": "label", "p": "number", "site": "level", "t": "any", "id": "id"}
_N = 60
_ROOM = 16 << 20  # what a reader may take for a file of any size
_ODD_CELLS = (
    *(
        "",
        " ",
        "nan",
        "-inf",
        "1e400",
        "-1e308",
        "1e-400",
        "9" * 400,
        "0x1F",
        "1_000",
        "1,5",
        "007",
    ),
    *("true", "None", "NULL", "\x00", "\x1b[2J", "\u202e", "\ufeff", "\u0661", "−1", "½"),
    *("🙂", "2024-02-30", "2024-01-01T00:00:00+14:00", "999999-01-01", "'", '"', '""', '"a,b"'),
    *(
        '"a\nb"',
        "\r",
        "\n",
        ",",
        ";",
        "\t",
        "|",
        "=cmd()",
        "../../x",
        "{}",
        "<script>",
        "x" * 100_000,
    ),
)
_ODD_COLUMNS: tuple[Callable[[int], Any], ...] = (
    lambda n: pa.nulls(n),
    lambda n: pa.array([None, *range(n - 1)]),
    lambda n: pa.array([float("nan"), *range(n - 1)]),
    lambda n: pa.array([1e308, -1e308, *np.zeros(n - 2)]),
    lambda n: pa.array(np.full(n, 2**64 - 1, np.uint64)),
    lambda n: pa.array(np.full(n, -(2**63), np.int64)),
    lambda n: pa.array(np.zeros(n, np.float16)),
    lambda n: pa.array([Decimal(10) ** 37] * n),
    lambda n: pa.array([Decimal(10) ** 70] * n, pa.decimal256(76)),
    lambda n: pa.array([[1.0]] * n),
    lambda n: pa.array([[]] * n, pa.list_(pa.float64())),
    lambda n: pa.array([[1.0, 2.0]] * n, pa.list_(pa.float64(), 2)),
    lambda n: pa.array([{"a": 1}] * n),
    lambda n: pa.array([[("a", 1)]] * n, pa.map_(pa.string(), pa.int64())),
    lambda n: pa.array([b"\xff"] * n),
    lambda n: pa.array([b"\xff\xff"] * n, pa.binary(2)),
    lambda n: pa.array(["x"] * n, pa.large_string()),
    lambda n: pa.array(["0.5"] * n, pa.string_view()),
    lambda n: pa.array(["\x1b[2J"] * n).dictionary_encode(),
    lambda n: pa.array([None] * n, pa.string()).dictionary_encode(),
    lambda n: pa.array([True, False] * (n // 2)),
    lambda n: pa.array([date(1, 1, 1)] * n),
    lambda n: pa.array([datetime(9999, 12, 31, tzinfo=UTC)] * n),
    lambda n: pa.array([-(2**63) + 1] * n, pa.timestamp("us")),
    lambda n: pa.array([timedelta(days=99_999)] * n),
    lambda n: pa.array([1] * n, pa.time32("s")),
    lambda n: pa.array([0.5] * n, pa.float32()),
    lambda n: pa.array(["2024-01-01"] * n),
)


def table_targets(folder: Path) -> Iterator[Target]:
    """Yield each reader of files with each kind of file that it takes."""
    text, table = _honest_csv(), _honest_table()
    packed = {"csv": text.encode(), "csv.gz": gzip.compress(text.encode(), mtime=0)}
    packed |= {"csv.bz2": bz2.compress(text.encode()), "parquet": _parquet(table)}
    readers: dict[str, Callable[[Path], object]] = {
        "columns": _whole,
        "batches": _in_batches,
        "batch of a monitor": read_table,
        "command": _command,
    }
    for ending, honest in packed.items():
        changes: tuple[Change, ...] = (damaged, _other_file)
        changes += {"csv": (_odd_text,) * 4, "parquet": (_odd_table,) * 4}.get(ending, (_odd_pack,))
        for name, read in readers.items():
            if name == "batch of a monitor" and ending == "csv.bz2":
                continue  # which takes no such files
            path = folder / f"rows.{ending}"
            yield Target(f"{name}, .{ending}", honest, _of_path(read, path), changes, _ROOM)


@contextlib.contextmanager
def rows_limited() -> Iterator[None]:
    """Let files unpack to few megabytes, so that small bombs do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LIMIT_VARIABLE, str(8_000_000))
        yield


def _of_path(read: Callable[[Path], object], path: Path) -> Callable[[bytes], object]:
    def of_bytes(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return of_bytes


def _whole(path: Path) -> object:
    columns = read_columns(path, ROLES)
    return evaluate(
        columns["y"],
        columns["p"],
        row_id=columns["id"],
        fields={"site": columns["site"], "t": columns["t"]},
        split=InSample(),
    )


def _in_batches(path: Path) -> object:
    return evaluate_files(path, y_true="y", y_proba="p", row_id="id", fields=["site"])


def _command(path: Path) -> None:
    """Evaluate on the command line, which must end in one line and exit code 2 at worst."""
    from trueup_cli.app import app

    columns = ["--target", "y", "--proba", "p", "--row-id", "id", "--field", "site"]
    result = CliRunner().invoke(app, ["evaluate", str(path), *columns])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in (0, 2), result.output
    assert "\x1b" not in result.output
    if result.exit_code:
        raise TrueupError(result.output)


def _honest_table() -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "y": np.arange(_N) % 2,
            "p": rng.uniform(0.1, 0.9, _N).round(6),
            "site": rng.choice(["news", "shop"], _N),
            "t": np.arange(_N),
            "id": np.arange(_N),
        }
    )


def _honest_csv() -> str:
    table = _honest_table()
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    lines = [table.column_names, *([str(cell) for cell in row] for row in rows)]
    return "".join(",".join(line) + "\n" for line in lines)


def _parquet(table: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


def _odd_text(data: bytes, rng: Random) -> bytes:
    """Return text with odd cells, rows or header, then perhaps another encoding."""
    lines = [line.split(",") for line in data.decode().splitlines()]
    for _ in range(rng.randint(1, 3)):
        row = rng.choice((0, rng.randrange(len(lines)), len(lines) - 1))
        column = rng.randrange(5)
        match rng.randrange(8):
            case 0 | 1 | 2:
                lines[row][column % len(lines[row] or [0]) :] = [rng.choice(_ODD_CELLS)]
            case 3:
                odd = rng.choice(_ODD_CELLS)
                for line in lines[1:]:
                    line[column : column + 1] = [odd]
            case 4:
                lines[row] = lines[row] * rng.choice((0, 2, 1000))
            case 5:
                lines[0][column : column + 1] = [rng.choice(lines[0] or ["y"])]
            case 6:
                del lines[rng.choice((0, row)) : rng.choice((1, row + 1, len(lines)))]
                lines = lines or [[]]
            case 7:
                lines = [line[::-1] for line in lines]
    ending, sep, encoding = "\n", ",", "utf-8"
    if rng.random() < 0.4:
        ending, sep = rng.choice(("\n", "\r\n", "\r", "\n\n")), rng.choice(",;\t|\x00 ")
        encoding = rng.choice(("utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1", "utf-7"))
    return ending.join(sep.join(line) for line in lines).encode(encoding, errors="replace")


def _odd_pack(data: bytes, rng: Random) -> bytes:
    """Return compressed data that is cut, doubled, spoilt inside, of another kind or a bomb."""
    text, pack = _honest_csv().encode(), gzip.compress if data[:2] == b"\x1f\x8b" else bz2.compress
    return rng.choice(
        (
            lambda: pack(_odd_text(text, rng)),
            lambda: pack(damaged(text, rng)),
            lambda: pack(pack(text)),
            lambda: pack(text + b"0,0.5,news,1,1\n" * 1_000_000),
            lambda: data + data,
            lambda: data[: rng.randrange(len(data))],
            lambda: text,
            lambda: pack(bytes(rng.choice((10, 3_000_000)))),
            lambda: bz2.compress(text),
        )
    )()


def _other_file(_data: bytes, rng: Random) -> bytes:
    """Return what another kind of file holds."""
    whole = rng.choice((b"", b"\n", b"PK\x03\x04", b"%PDF-1.7\n", b"\x89PNG\r\n", b"PAR1PAR1"))
    return rng.choice((whole, whole + rng.randbytes(200), _parquet(_honest_table())))


def _odd_table(_data: bytes, rng: Random) -> bytes:
    """Return a valid parquet file whose columns are of odd types, missing, doubled or renamed."""
    table = _honest_table()
    for _ in range(rng.randint(1, 2)):
        at, names = rng.randrange(table.num_columns), table.column_names
        match rng.randrange(6):
            case 0 | 1 | 2:
                odd = rng.choice(_ODD_COLUMNS)(_N)[: table.num_rows]
                table = table.set_column(at, names[at], odd)
            case 3 if table.num_columns > 1:
                table = table.remove_column(at)
            case 4:
                odd_name = rng.choice((*names, "", "a\x1b[2J", "\u202e", "x" * 10_000))
                table = table.rename_columns([*names[:at], odd_name, *names[at + 1 :]])
            case _:
                table = table.slice(0, rng.choice((0, 1, 2)))
    return _parquet(
        table,
        compression=rng.choice(("snappy", "zstd", "gzip", "none")),
        row_group_size=rng.choice((1, 7, 1000)),
    )
