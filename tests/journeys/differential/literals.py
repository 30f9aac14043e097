"""SQL literals of every type of Spark: plain values, and values at the edges of their type."""

from random import Random

PLAIN: dict[str, list[str]] = {
    "boolean": ["true", "false"],
    "tinyint": ["1Y", "2Y", "3Y", "-3Y", "7Y"],
    "smallint": ["1S", "2S", "30S", "-4S"],
    "int": ["0", "1", "2", "3", "5", "-1", "12"],
    "bigint": ["0L", "1L", "2L", "3L", "40L", "-7L", "1700000000L"],
    "float": ["0.5F", "1.25F", "-2.0F", "3.0F"],
    "double": ["0.1D", "1.5D", "-2.25D", "3.0D", "100.125D"],
    "decimal(4,1)": ["0.5", "1.5", "-2.0", "99.9"],
    "decimal(10,2)": ["0.05", "1.10", "-2.25", "1234.56"],
    "decimal(38,18)": ["0.000000000000000001", "1.5", "-3.25"],
    "decimal(38,0)": ["1", "20", "-3", "123456789012345678901"],
    "string": ["'a'", "'b'", "'Ab c'", "'spark SQL'", "'10'", "'2.5'", "'x,y,z'", "' b '", "'Z'"],
    "binary": ["X'61'", "X'00FF'", "X'537061726B'"],
    "date": ["DATE'2024-03-31'", "DATE'2024-02-29'", "DATE'2023-12-31'", "DATE'2024-10-27'"],
    "timestamp": [
        "TIMESTAMP'2024-03-31 00:59:59.5Z'",
        "TIMESTAMP'2024-03-31 01:00:00Z'",
        "TIMESTAMP'2024-10-27 00:30:00Z'",
        "TIMESTAMP'2024-10-27 01:30:00.123456Z'",
        "TIMESTAMP'2024-03-10 06:59:59Z'",
        "TIMESTAMP'2024-11-03 05:30:00Z'",
        "TIMESTAMP'2024-11-03 06:30:00Z'",
    ],
    "timestamp_ntz": [
        "TIMESTAMP_NTZ'2024-03-31 02:30:00'",
        "TIMESTAMP_NTZ'2024-10-27 02:30:00.000001'",
        "TIMESTAMP_NTZ'2024-03-10 02:30:00'",
        "TIMESTAMP_NTZ'2023-01-01 00:00:00'",
    ],
    "time(6)": ["TIME'00:00:00'", "TIME'12:34:56.789012'", "TIME'23:59:59'"],
    "interval day to second": [
        "INTERVAL '1 02:03:04.5' DAY TO SECOND",
        "INTERVAL '0 00:00:10' DAY TO SECOND",
        "INTERVAL '-0 00:00:01.000001' DAY TO SECOND",
    ],
    "interval year to month": [
        "INTERVAL '1-2' YEAR TO MONTH",
        "INTERVAL '0-11' YEAR TO MONTH",
        "INTERVAL '-2-0' YEAR TO MONTH",
    ],
    "variant": [
        'parse_json(\'{"a": 1, "b": [1, 2.5, null]}\')',
        "parse_json('\"text\"')",
        "parse_json('7')",
        "parse_json('null')",
    ],
    "array<int>": ["array(1, 2, 3)", "array(3, NULL, 1)", "array(5)", "array()"],
    "array<string>": ["array('b', 'a', 'c')", "array('x', NULL)", "array('a')"],
    "array<double>": ["array(1.5D, -0.5D)", "array(0.25D, NULL, 2D)"],
    "map<string,int>": ["map('a', 1, 'b', 2)", "map('b', NULL)", "map('c', 3, 'a', 0)"],
    "struct<a:int,b:string>": [
        "named_struct('a', 1, 'b', 'x')",
        "named_struct('a', 2, 'b', 'y')",
        "named_struct('a', CAST(NULL AS INT), 'b', 'z')",
    ],
    "array<struct<a:int,b:string>>": [
        "array(named_struct('a', 2, 'b', 'x'), named_struct('a', 1, 'b', 'y'))",
        "array(named_struct('a', 1, 'b', 'q'))",
    ],
}

EXTREME: dict[str, list[str]] = {
    "tinyint": ["127Y", "CAST('-128' AS TINYINT)", "0Y"],
    "smallint": ["32767S", "CAST('-32768' AS SMALLINT)", "0S"],
    "int": ["2147483647", "-2147483648", "-2147483647"],
    "bigint": ["9223372036854775807L", "-9223372036854775808L", "-9223372036854775807L"],
    "float": ["float('NaN')", "float('Infinity')", "-0.0F", "float('3.4028235E38')", "1.4E-45F"],
    "double": [
        *("double('NaN')", "double('Infinity')", "double('-Infinity')", "-0.0D", "0.0D"),
        *("1.7976931348623157E308D", "4.9E-324D", "9007199254740993D"),
    ],
    "decimal(4,1)": ["999.9", "-999.9", "0.0"],
    "decimal(10,2)": ["99999999.99", "-99999999.99", "0.00"],
    "decimal(38,18)": ["99999999999999999999.999999999999999999", "0"],
    "decimal(38,0)": ["99999999999999999999999999999999999999", "0"],
    "string": [
        *("''", "'\\0'", "'ÄÖß'", "'𝄞é'", "'\\'quoted\\''", "'a\\nb'", "'%_'", "'NaN'", "'true'"),
        *("'null'", "'\\\\'", "'2024-03-31 02:30:00'", "'ß'", "'SS'", "'I'", "'ı'"),
    ],
    "binary": ["X''", "X'FFFE'", "X'C328'"],
    "date": ["DATE'0001-01-01'", "DATE'9999-12-31'", "DATE'1582-10-15'", "DATE'1969-12-31'"],
    "timestamp": [
        "TIMESTAMP'0001-01-02 00:00:00Z'",
        "TIMESTAMP'9999-12-30 23:59:59.999999Z'",
        "TIMESTAMP'1969-12-31 23:59:59.999999Z'",
        "TIMESTAMP'1900-01-01 00:00:00Z'",
    ],
    "timestamp_ntz": [
        "TIMESTAMP_NTZ'0001-01-01 00:00:00'",
        "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'",
        "TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'",
    ],
    "time(6)": ["TIME'23:59:59.999999'", "TIME'00:00:00.000001'"],
    "interval day to second": [
        "INTERVAL '106751991 04:00:54.775807' DAY TO SECOND",
        "INTERVAL '-106751991 04:00:54.775807' DAY TO SECOND",
        "INTERVAL '0 00:00:00' DAY TO SECOND",
    ],
    "interval year to month": [
        "INTERVAL '178956970-7' YEAR TO MONTH",
        "INTERVAL '-178956970-7' YEAR TO MONTH",
        "INTERVAL '0-0' YEAR TO MONTH",
    ],
    "variant": ["parse_json('1e400')", "parse_json('[]')", "parse_json('{\"\": {}}')"],
    "array<double>": ["array(double('NaN'), -0.0D, 0.0D)", "array()"],
    "array<string>": ["array()", "array('', 'a', 'A')"],
    "map<string,int>": ["map()", "map('', 2147483647)"],
}

NOTHING = 0.12
"""The share of NULLs among the values of a column."""


def value(random: Random, kind: str, extremes: bool) -> str:
    """Return a value of a column as SQL, with exactly the column's type."""
    pool = PLAIN.get(kind, [])
    if extremes and kind in EXTREME:
        pool = pool + EXTREME[kind]
    if not pool or random.random() < NOTHING:
        return f"CAST(NULL AS {kind})" if kind != "void" else "NULL"
    return f"CAST({random.choice(pool)} AS {kind})"


def literal(random: Random, kind: str) -> str | None:
    """Return a literal for use in a query; None if this type has none."""
    pool = PLAIN.get(kind)
    if not pool:
        return None
    if kind in EXTREME and random.random() < 0.15:
        pool = EXTREME[kind]
    chosen = random.choice(pool)
    return f"CAST({chosen} AS {kind})" if kind.startswith("decimal") else chosen
