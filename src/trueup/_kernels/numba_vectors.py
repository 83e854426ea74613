"""Arithmetic on several numbers at once that numba does not find by itself."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_DOUBLE, _INT, _LANE = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
_EIGHT = ir.VectorType(_DOUBLE, 8)


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
    table, row, x, weight = arguments
    term, power = _repeated(builder, weight), x
    for bit in (1, 2, 4):
        factors = _where_bit_is_set(builder, bit, power)
        term = builder.fmul(term, factors, flags=("contract",))
        power = builder.fmul(power, power)
    start = context.make_array(signature.args[0])(context, builder, table).data
    return _add_to_row(context, builder, start, row, term)


def _add_numbers(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    table, row, *numbers = arguments
    term = ir.Constant(ir.VectorType(_DOUBLE, len(numbers)), ir.Undefined)
    for k, number in enumerate(numbers):
        term = builder.insert_element(term, number, ir.Constant(_LANE, k))
    start = context.make_array(signature.args[0])(context, builder, table).data
    return _add_to_row(context, builder, start, row, term)


def _add_to_row(context: Any, builder: Any, start: Any, row: Any, term: Any) -> Any:
    first = builder.gep(start, [builder.mul(row, ir.Constant(_INT, term.type.count))])
    target = builder.bitcast(first, term.type.as_pointer())
    sums = builder.fadd(builder.load(target, align=8), term, flags=("contract",))
    builder.store(sums, target, align=8)
    return context.get_dummy_value()


def _repeated(builder: Any, value: Any) -> Any:
    first = builder.insert_element(ir.Constant(_EIGHT, ir.Undefined), value, ir.Constant(_INT, 0))
    lanes = ir.Constant(ir.VectorType(_LANE, 8), [0] * 8)
    return builder.shuffle_vector(first, ir.Constant(_EIGHT, ir.Undefined), lanes)


def _where_bit_is_set(builder: Any, bit: int, value: Any) -> Any:
    """Return the value in the places whose number has the bit, and one in the others."""
    mask = ir.Constant(ir.VectorType(ir.IntType(1), 8), [bool(k & bit) for k in range(8)])
    return builder.select(mask, _repeated(builder, value), ir.Constant(_EIGHT, [1.0] * 8))
