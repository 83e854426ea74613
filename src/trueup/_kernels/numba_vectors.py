"""Arithmetic on several numbers at once that numba does not find by itself."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_DOUBLE, _INT, _LANE = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
_FOUR = ir.VectorType(_DOUBLE, 4)


@intrinsic
def add_powers(typing_context: Any, table: Any, row: Any, x: Any, weight: Any) -> Any:  # noqa: ARG001
    """Add ``weight x^k``, k = 0 to 7, to a row of a table of eight columns."""
    return types.void(table, row, x, weight), _add_powers


@intrinsic
def add_four(typing_context: Any, table: Any, row: Any, a: Any, b: Any, c: Any, d: Any) -> Any:  # noqa: ARG001
    """Add four numbers to a row of a table of four columns."""
    return types.void(table, row, a, b, c, d), _add_numbers


@intrinsic
def add_eight(
    typing_context: Any,  # noqa: ARG001
    table: Any,
    row: Any,
    a: Any,
    b: Any,
    c: Any,
    d: Any,
    e: Any,
    f: Any,
    g: Any,
    h: Any,
) -> Any:
    """Add eight numbers to a row of a table of eight columns."""
    return types.void(table, row, a, b, c, d, e, f, g, h), _add_numbers


def _add_powers(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Add four powers twice: vectors of eight numbers take longer to load and to spread."""
    table, row, x, weight = arguments
    square = builder.fmul(x, x)
    term = _repeated(builder, weight)
    for bit, power in ((1, x), (2, square)):
        raised = builder.fmul(term, _repeated(builder, power))
        term = builder.select(_where_bit_is_set(bit), raised, term)
    fourth = _repeated(builder, builder.fmul(square, square))
    start = context.make_array(signature.args[0])(context, builder, table).data
    first = builder.mul(row, ir.Constant(_INT, 8))
    _add_at(builder, start, first, term)
    upper = builder.fmul(term, fourth, flags=("contract",))
    _add_at(builder, start, builder.add(first, ir.Constant(_INT, 4)), upper)
    return context.get_dummy_value()


def _add_numbers(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    table, row, *numbers = arguments
    term = ir.Constant(ir.VectorType(_DOUBLE, len(numbers)), ir.Undefined)
    for k, number in enumerate(numbers):
        term = builder.insert_element(term, number, ir.Constant(_LANE, k))
    start = context.make_array(signature.args[0])(context, builder, table).data
    _add_at(builder, start, builder.mul(row, ir.Constant(_INT, len(numbers))), term)
    return context.get_dummy_value()


def _add_at(builder: Any, start: Any, place: Any, term: Any) -> None:
    target = builder.bitcast(builder.gep(start, [place]), term.type.as_pointer())
    sums = builder.fadd(builder.load(target, align=8), term, flags=("contract",))
    builder.store(sums, target, align=8)


def _repeated(builder: Any, value: Any) -> Any:
    first = builder.insert_element(ir.Constant(_FOUR, ir.Undefined), value, ir.Constant(_INT, 0))
    lanes = ir.Constant(ir.VectorType(_LANE, 4), [0] * 4)
    return builder.shuffle_vector(first, ir.Constant(_FOUR, ir.Undefined), lanes)


def _where_bit_is_set(bit: int) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(1), 4), [bool(k & bit) for k in range(4)])
