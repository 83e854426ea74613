"""Functions elsewhere: on the workers of a cluster whose client can submit one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from trueup.errors import InvalidInputError
from trueup.extras import needed_by

_SPARK = ("spark://", "local[", "k8s://", "yarn")
_DASK = ("dask://", "tcp://", "tls://", "ws://", "wss://", "ucx://")
_PATIENCE = 15  # seconds for a scheduler to answer


class Future(Protocol):
    """What a client returns for a function that it has submitted."""

    def result(self) -> Any: ...


class Executor(Protocol):
    """A ``distributed.Client``, an executor of ``concurrent.futures``, or anything like them."""

    def submit(self, function: Any, /, *arguments: Any) -> Future: ...


def as_executor(executor: Any) -> Executor | None:
    """Return what can run a function elsewhere: a client with ``submit``, or a session of Spark."""
    if executor is None or callable(getattr(executor, "submit", None)):
        return executor  # type: ignore[no-any-return]
    if hasattr(executor, "sparkContext"):
        return _OnSpark(executor)
    raise InvalidInputError(
        "executor must have a method submit",
        repr(executor),
        "Pass the Client of your cluster, a SparkSession, or an executor of concurrent.futures.",
    )


def check_address(address: Any) -> str:
    """Return the address of a cluster, of a scheduler of Dask or a master of Spark."""
    if not isinstance(address, str) or not address.startswith(_DASK + _SPARK):
        raise InvalidInputError(
            "executor must be the address of a cluster",
            repr(address),
            'Pass "dask://host:8786" for a scheduler of Dask, "spark://host:7077" or "yarn" for a '
            "master of Spark.",
        )
    return address


@contextmanager
def executor_at(address: str) -> Iterator[Executor]:
    """Open the client of a cluster, refused where nobody answers, and close it at the end.

    The address is ``dask://host:port``, what ``distributed.Client`` takes, or a master of Spark.
    """
    opened = _on_spark if check_address(address).startswith(_SPARK) else _on_dask
    with opened(address) as executor:
        yield executor


@contextmanager
def _on_dask(address: str) -> Iterator[Executor]:
    with needed_by(f"executor {address}"):
        from distributed import Client
    known = address.replace("dask://", "tcp://", 1)
    try:
        client: Any = Client(known, timeout=_PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            "executor must be the address of a scheduler that answers",
            f"{address!r} ({error})",
            "Start one with `dask scheduler`, and workers with `dask worker`.",
        ) from error
    with client:
        yield client


@contextmanager
def _on_spark(address: str) -> Iterator[Executor]:
    with needed_by(f"executor {address}"):
        from pyspark.sql import SparkSession
    session = SparkSession.builder.master(address).appName("trueup").getOrCreate()
    try:
        yield _OnSpark(session)
    finally:
        session.stop()


@dataclass(frozen=True)
class _OnSpark:
    """Each function is a job of one task."""

    session: Any

    def submit(self, function: Any, *arguments: Any) -> _SparkJob:
        """Return a job, which begins when its result is asked for: threads wait for one each."""
        return _SparkJob(self.session, function, arguments)


@dataclass(frozen=True)
class _SparkJob:
    session: Any
    function: Any
    arguments: tuple[Any, ...]

    def result(self) -> Any:
        call, arguments = self.function, self.arguments
        one = self.session.sparkContext.parallelize([None], 1)
        ((found, error),) = one.map(lambda _: _attempt(call, arguments)).collect()
        if error is not None:
            raise error
        return found


def _attempt(call: Any, arguments: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    """Return the result or the exception itself: Spark would try again, and raise its own."""
    try:
        return call(*arguments), None
    except Exception as error:  # whatever a training raises is raised again where it is awaited
        return None, error
