"""Types of the volume test. Every value is the image of a rank, a whole number, under a map that keeps order and
never gives one value twice; null has no rank and is below all. The oracle sees ranks alone, so that what it says
of order and equality cannot depend on how an engine compares values of a type."""

from dataclasses import dataclass
from typing import Callable, Optional

WIDE = 1 << 20  # ranks of a type without an end, as far as they are used


def same(expr):
    return expr


def whole(value):
    """Null for null, whatever the parts are."""
    return lambda n, h: f"CASE WHEN {n} IS NOT NULL THEN {value(n, h)} END"


def plain_pair(expr):
    return f"CASE WHEN {expr} IS NOT NULL THEN struct_pack(a := ({expr}).a, b := ({expr}).b) END"


def plain_zero(expr):
    return f"CASE WHEN {expr} = 0 THEN 0.0 WHEN isnan({expr}) THEN 'NaN'::DOUBLE ELSE {expr}::DOUBLE END"


def micros(expr):
    return f"epoch_us({expr})"


@dataclass(frozen=True)
class Kind:
    name: str
    ranks: int  # 0 … ranks - 1
    value: Callable[[str, str], str]  # SQL of the value of a rank; the second is noise, for values that only look different
    plain: Callable[[str], str] = same  # SQL under which equal values are equal for every engine
    fields: Optional[tuple] = None  # of a struct of two nullable fields: the names; rank = (a + 1) * 4 + (b + 1)


def listed(name, values, **options):
    return Kind(name, len(values), lambda n, h: f"([{', '.join(values)}])[{n} + 1]", **options)


def entries(expr):
    return f"list_sort(map_entries({expr}))"


NAN, INF, BELOW = "'NaN'::DOUBLE", "'Infinity'::DOUBLE", "'-Infinity'::DOUBLE"


def zero_of(noise):
    return f"CASE WHEN {noise} % 2 = 0 THEN '-0.0'::DOUBLE ELSE 0.0::DOUBLE END"


def real_value(n, h):
    return (f"CASE {n} WHEN 0 THEN {BELOW} WHEN 1 THEN -1.5 WHEN 2 THEN {zero_of(h)} WHEN 3 THEN 1.5 WHEN 4 THEN {INF} "
            f"WHEN 5 THEN {NAN} END")


def pair_value(n, h):
    a, b = f"nullif({n} // 4, 0)", f"nullif({n} % 4, 0)"
    # In the order (b, a): of two structs a decides first, by the names of the fields.
    return f"struct_pack(b := 'b' || {b}, a := {a}::BIGINT)"


def map_value(n, h):
    both = f"CASE WHEN {h} % 2 = 0 THEN MAP {{'a': 1::BIGINT, 'b': 2}} ELSE MAP {{'b': 2::BIGINT, 'a': 1}} END"
    return (f"CASE {n} WHEN 0 THEN MAP([]::VARCHAR[], []::BIGINT[]) WHEN 1 THEN MAP {{'a': NULL::BIGINT}} "
            f"WHEN 2 THEN MAP {{'a': 1::BIGINT}} WHEN 3 THEN {both} WHEN 4 THEN MAP {{'a': 2::BIGINT}} END")


# Columns that events give.
NUMBER = Kind("BIGINT", 12, lambda n, h: f"({n} * 3 - 5)::BIGINT")
VALUES = [
    NUMBER,
    listed("STRING", ["''", "'B'", "'a'", "'a '", "'b'", "'Ä'"]),
    Kind("STRING wide", WIDE, lambda n, h: f"'w' || lpad({n}::VARCHAR, 7, '0')"),
    Kind("DOUBLE", 6, real_value, plain_zero),
    listed("BINARY", ["'\\x00'::BLOB", "'\\x00\\x01'::BLOB", "'A'::BLOB", "'\\xC3'::BLOB", "'\\xFF\\xFE'::BLOB"]),
    Kind("DECIMAL(12,3)", 9, lambda n, h: f"(({n} - 4) * 1.125::DECIMAL(6,3))::DECIMAL(12,3)"),
    Kind("TIMESTAMP", 7, lambda n, h: f"make_timestamp(1600000000000000 + {n} * 1000001)::TIMESTAMPTZ", micros),
    Kind("DATE", 7, lambda n, h: f"DATE '1999-12-28' + {n}::INTEGER"),
    Kind("BOOLEAN", 2, lambda n, h: f"{n} = 1"),
    Kind("STRUCT", 16, whole(pair_value), plain_pair, fields=("a", "b")),
    listed("ARRAY<STRING>", ["[]::VARCHAR[]", "[NULL]::VARCHAR[]", "['a']", "['a', NULL]", "['a', 'b']", "['b']"]),
    Kind("MAP<STRING, BIGINT>", 5, map_value, entries),
]


def struct_of(n, h):
    return f"struct_pack(a := nullif({n} // 13, 0)::BIGINT, b := 's' || {n} % 13)"


def real_key(n, h):
    return (f"CASE {n} WHEN 0 THEN {zero_of(h)} WHEN 1 THEN CASE WHEN {h} % 2 = 0 THEN {NAN} ELSE -{NAN} END "
            f"WHEN 2 THEN {INF} WHEN 3 THEN {BELOW} ELSE {n} / 4.0::DOUBLE - 7777.1 END")


# Keys are told apart alone; which order they have means nothing.
KEYS = [
    Kind("BIGINT", WIDE, lambda n, h: f"({n} * 7 - 1000)::BIGINT"),
    Kind("STRING", WIDE, lambda n, h: f"CASE {n} % 3 WHEN 0 THEN 'k' WHEN 1 THEN 'Ä' ELSE '' END || {n}"),
    Kind("BINARY", WIDE, lambda n, h: f"unhex(printf('%08x', ({n} * 2654435761) % 4294967296))"),
    Kind("DOUBLE", WIDE, real_key, plain_zero),
    Kind("DECIMAL(20,4)", WIDE, lambda n, h: f"({n}::DECIMAL(12,0) * 0.0003::DECIMAL(5,4))::DECIMAL(20,4)"),
    Kind("DECIMAL(38,0)", WIDE, lambda n, h: f"({n}::HUGEINT * 10000000000000000000000)::DECIMAL(38,0)"),
    Kind("TIMESTAMP", WIDE, lambda n, h: f"make_timestamp(1500000000000000 + {n} * 999983)::TIMESTAMPTZ", micros),
    Kind("DATE", WIDE, lambda n, h: f"DATE '1900-01-01' + {n}::INTEGER"),
    Kind("STRUCT", WIDE, whole(struct_of), plain_pair),
]


def real_sequence(n, h):
    return f"CASE {n} WHEN 64 THEN {zero_of(h)} ELSE ({n} - 64) / 8.0::DOUBLE END"


def pair_sequence(n, h):
    return f"struct_pack(a := ({n} // 7)::BIGINT, b := nullif({n} % 7, 0)::INTEGER)"


SEQUENCES = [
    Kind("BIGINT", WIDE * 16, lambda n, h: f"({n} * 5 - 1000)::BIGINT"),
    Kind("INT", WIDE * 16, lambda n, h: f"({n} - 100)::INTEGER"),
    Kind("TIMESTAMP", WIDE * 16, lambda n, h: f"make_timestamp(1400000000000000 + {n} * 1000003)::TIMESTAMPTZ", micros),
    Kind("TIMESTAMP_NTZ", WIDE * 16, lambda n, h: f"make_timestamp(1400000000000000 + {n} * 7)", micros),
    Kind("STRING", WIDE * 16, lambda n, h: f"'s' || lpad({n}::VARCHAR, 9, '0')"),
    Kind("DECIMAL(18,2)", WIDE * 16, lambda n, h: f"({n} * 0.25::DECIMAL(3,2))::DECIMAL(18,2)"),
    Kind("DOUBLE", WIDE * 16, real_sequence, plain_zero),
    Kind("STRUCT", WIDE * 16, whole(pair_sequence), plain_pair),
]

# The versions of snapshots count from 0; of SYSTEM SEQUENCE BY.
COUNTED = Kind("BIGINT", WIDE, lambda n, h: f"{n}::BIGINT")
SYSTEM = Kind("BIGINT", 8, lambda n, h: f"({n} * 10)::BIGINT")
