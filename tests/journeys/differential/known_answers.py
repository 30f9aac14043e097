"""Texts that were once answered wrongly, in groups: the text, its streams, and how it is checked.

All texts run in one gate, so that similar texts can be confused. `over` evaluates a text over all
tuples of a stream, `windows` over every window, `pairs` as a join of tuples as they arrive.
"""

from differential.by_hand import HALF, SECOND, TEN, over, pairs, to_files, two_windows, windows
from differential.cases import Case
from differential.known_names import NAMES

_JOINED = "SELECT a.id AS x, b.id AS y FROM @0@ {} JOIN @1@ ON a.k = b.k@near@ WHERE true@final@"
_HALVES = "SELECT a.id AS x FROM @0@ {} JOIN @1@ ON a.k = b.k@near@ WHERE true@final@"
_NOTHING = "SELECT count(*) AS n, sum({0}) AS t, max({0}) AS top FROM @0@ WHERE {0} > 1000"

KNOWN: dict[str, list[Case]] = {
    "lambdas that differ in the order of their operands": over(
        "facts",
        "SELECT id, aggregate(ai, 0, (p, x) -> p - x) AS y FROM @0@",
        "SELECT id, aggregate(ai, 0, (p, x) -> x - p) AS y FROM @0@",
        "SELECT id, aggregate(ai, 0, (p, x) -> p - x, p -> p * 2) AS y FROM @0@",
        "SELECT id, transform(ai, (x, i) -> x - i) AS y FROM @0@",
        "SELECT id, transform(ai, (x, i) -> i - x) AS y FROM @0@",
        "SELECT id, zip_with(ai, bi, (x, y) -> x - y) AS y FROM @0@",
        "SELECT id, zip_with(ai, bi, (x, y) -> y - x) AS y FROM @0@",
        "SELECT id, zip_with(bi, ai, (x, y) -> x - y) AS y FROM @0@",
        "SELECT id, array_sort(ai, (x, y) -> x - y) AS y FROM @0@ WHERE id IN (0, 5)",
        "SELECT id, array_sort(ai, (x, y) -> y - x) AS y FROM @0@ WHERE id IN (0, 5)",
        "SELECT id, transform_values(mp, (k, v) -> concat(k, v)) AS y FROM @0@",
        "SELECT id, transform_values(mp, (k, v) -> concat(v, k)) AS y FROM @0@",
        "SELECT id FROM @0@ WHERE exists(ai, x -> x > a)",
        "SELECT id FROM @0@ WHERE exists(ai, x -> a > x)",
        "SELECT id, filter(ai, (x, i) -> x > i) AS y FROM @0@",
        "SELECT id, filter(ai, (x, i) -> i > x) AS y FROM @0@",
    ),
    "lambdas in windows": windows(
        "facts", TEN,
        "SELECT k, sum(aggregate(ai, 0, (p, x) -> p - x)) AS t FROM @0@ GROUP BY k",
        "SELECT k, sum(aggregate(ai, 0, (p, x) -> x - p)) AS t FROM @0@ GROUP BY k",
        "SELECT max(transform(bi, x -> x - a)) AS t FROM @0@",
        "SELECT max(transform(bi, x -> a - x)) AS t FROM @0@",
    ),
    "options and the order of arguments": over(
        "facts",
        "SELECT id, from_csv(cs, 'a STRING, b STRING') AS y FROM @0@",
        "SELECT id, from_csv(cs, 'a STRING, b STRING', map('sep', ';')) AS y FROM @0@",
        "SELECT id, from_csv(cs, 'a STRING, b STRING', map('sep', ',')) AS y FROM @0@",
        "SELECT id, from_json(js, 'a INT') AS y FROM @0@",
        "SELECT id, from_json(js, 'a INT', map('allowSingleQuotes', 'false')) AS y FROM @0@",
        "SELECT id, to_csv(struct(a, k)) AS y FROM @0@",
        "SELECT id, to_csv(struct(a, k), map('sep', ';')) AS y FROM @0@",
        "SELECT id, sort_array(ai) AS y FROM @0@",
        "SELECT id, sort_array(ai, true) AS y FROM @0@",
        "SELECT id, sort_array(ai, false) AS y FROM @0@",
        "SELECT id, url_encode(url) AS y FROM @0@",
        "SELECT id, url_decode(url) AS y FROM @0@",
        "SELECT id, try_url_decode(url) AS y FROM @0@",
        "SELECT id, concat(k, cs) AS y FROM @0@",
        "SELECT id, concat(cs, k) AS y FROM @0@",
        "SELECT id, substring(url, 1, 2) AS y FROM @0@",
        "SELECT id, substring(url, 2, 1) AS y FROM @0@",
        "SELECT id, array_except(ai, bi) AS y FROM @0@",
        "SELECT id, array_except(bi, ai) AS y FROM @0@",
        "SELECT id FROM @0@ WHERE contains(url, k)",
        "SELECT id FROM @0@ WHERE contains(k, url)",
    ),
    "floating sums in written order": over(
        "facts",
        "SELECT id, d + e + f AS y FROM @0@",
        "SELECT id, d + (e + f) AS y FROM @0@",
        "SELECT id, f + e + d AS y FROM @0@",
        "SELECT id, d * e * f AS y FROM @0@",
        "SELECT id, f * (e * d) AS y FROM @0@",
        "SELECT id FROM @0@ WHERE d + e + f = 0.6D",
        "SELECT id FROM @0@ WHERE f + e + d = 0.6D",
    ),
    "sums that overflow in one order only": over(
        "facts",
        "SELECT id, l + 1 - 1 AS y FROM @0@ WHERE id > 4",
        "SELECT id, l - 1 + 1 AS y FROM @0@ WHERE id > 4",
        "SELECT id, l + 1 + -1 AS y FROM @0@ WHERE id > 4",
        "SELECT id, l + -1 + 1 AS y FROM @0@ WHERE id > 4",
    ),
    "collations": [
        *windows(
            "letters", TEN,
            "SELECT lower(ci COLLATE UTF8_BINARY) AS c, count(*) AS n FROM @0@ GROUP BY ci",
            "SELECT count(*) AS n, sum(v) AS t FROM @0@ GROUP BY ci",
            "SELECT count(*) AS n, sum(v) AS t FROM @0@ GROUP BY ai",
            "SELECT count(*) AS n, sum(v) AS t FROM @0@ GROUP BY rt",
            "SELECT count(*) AS n, sum(v) AS t FROM @0@ GROUP BY bin",
            "SELECT count(*) AS n FROM @0@ GROUP BY bin COLLATE UTF8_LCASE",
            "SELECT count(DISTINCT ci) AS n, count(DISTINCT ai) AS m FROM @0@",
            "SELECT count(*) AS n FROM (SELECT DISTINCT ci FROM @0@) q",
            "SELECT lower(min(ci)) AS least, lower(max(ci)) AS most FROM @0@ WHERE v <> 1",
            "SELECT min(bin) AS least, max(bin) AS most FROM @0@",
            "SELECT v FROM @0@ WHERE ci = 'B'",
            "SELECT v FROM @0@ WHERE ci IN ('B', 'c')",
            "SELECT v FROM @0@ ORDER BY ci, v LIMIT 2",
        ),
        *over(
            "letters",
            "SELECT v FROM @0@ WHERE ci = 'B'",
            "SELECT v FROM @0@ WHERE ai = 'e'",
            "SELECT v FROM @0@ WHERE rt = 'a'",
            "SELECT v FROM @0@ WHERE ci = 'b'",
            "SELECT v FROM @0@ WHERE bin = 'b'",
            "SELECT v, ci < 'C' AS y, bin COLLATE UTF8_LCASE = ci AS z FROM @0@",
            "SELECT ci, ai, rt, collation(ci) AS c FROM @0@",
        ),
        *pairs(
            ("letters", "RANGE 10 SECONDS"), ("letters", "RANGE 10 SECONDS"),
            *(
                ("", f"SELECT a.v AS x, b.v AS y FROM @0@ JOIN @1@ ON a.{c} = b.{c}@near@"
                     " WHERE true@final@")
                for c in ("ci", "ai", "rt", "bin")
            ),
            ("LEFT ANTI", "SELECT a.v AS x FROM @0@ LEFT ANTI JOIN @1@ ON a.ci = b.ci AND"
                          " a.v <> b.v@near@ WHERE true@final@"),
        ),
        *two_windows(("letters", TEN), ("letters", TEN),
                     "SELECT count(*) AS n FROM @0@ JOIN @1@ ON a.ci = b.ci"),
        *over("letters", "SELECT count(*) AS n@close@ FROM @0@ GROUP BY ci, window(ts, '1 MINUTE')",
              kind="window()"),
        *over("letters", "SELECT count(*) AS n@close@ FROM @0@ GROUP BY ci,"
              " session_window(ts, '3 SECONDS')", kind="session_window()"),
    ],
    "sums near the smallest long": [
        *windows(
            "facts", TEN,
            "SELECT sum(l) AS t FROM @0@ WHERE id IN (0, 1, 6)",
            "SELECT sum(l) AS t, avg(l) AS m, min(l) AS least FROM @0@ WHERE id IN (0, 1)",
            "SELECT try_sum(l) AS t FROM @0@ WHERE id IN (0, 2)",
            "SELECT sum(l) AS t FROM @0@ WHERE id IN (0, 2)",
            "SELECT k, sum(l) AS t FROM @0@ WHERE id <> 2 GROUP BY k",
            "SELECT sum(DISTINCT l) AS t FROM @0@ WHERE id < 2",
        ),
        *windows("facts", "ROWS 2 SLIDE 2", "SELECT sum(l) AS t FROM @0@"),
        *windows("facts", "ROWS 1", "SELECT sum(l) AS t, sum(-(l + 1)) AS u FROM @0@"),
        *over("facts", "SELECT sum(l) AS t@close@ FROM @0@ WHERE id <> 2 GROUP BY"
              " window(ts, '10 SECONDS', '5 SECONDS')", kind="window()"),
    ],
    "two windows in one text": [
        *two_windows(
            ("facts", TEN), ("facts", "RANGE 5 SECONDS SLIDE 5 SECONDS"),
            "SELECT count(*) AS n, sum(a.a - b.a) AS t FROM @0@ JOIN @1@ ON a.k = b.k",
            "SELECT a.id FROM @0@ WHERE a.id NOT IN (SELECT b.id FROM @1@)",
            "SELECT (SELECT count(*) FROM @0@) AS n, (SELECT count(*) FROM @1@) AS m",
            "SELECT count(*) AS n FROM @0@ UNION ALL SELECT count(*) FROM @1@",
        ),
        *two_windows(
            ("facts", "RANGE 20 SECONDS SLIDE 5 SECONDS"), ("instants", TEN),
            "SELECT a.k, count(b.id) AS n FROM @0@ LEFT JOIN @1@ ON a.k = b.k GROUP BY a.k",
        ),
        *windows("facts", "RANGE 20 SECONDS",
                 "SELECT window(ts, '5 SECONDS').end AS e, count(*) AS n FROM @0@ GROUP BY"
                 " window(ts, '5 SECONDS')",
                 "SELECT k, count(*) AS n FROM @0@ GROUP BY k, window(ts, '10 SECONDS',"
                 " '5 SECONDS')",
                 "SELECT count(*) AS n FROM @0@ GROUP BY session_window(ts, '2 SECONDS')"),
    ],
    "pipes and LATERAL": [
        *over("facts", "FROM @0@ |> WHERE a > 2 |> SELECT id, a + b AS y",
              "SELECT id, y FROM @0@, LATERAL (SELECT a + b AS y)",
              "SELECT id, q.col AS y FROM @0@, LATERAL explode(ai) q"),
        *windows("facts", TEN, "FROM @0@ |> AGGREGATE count(*) AS n GROUP BY k |> WHERE n > 1",
                 "SELECT id, y FROM @0@, LATERAL (SELECT a + b AS y) ORDER BY id LIMIT 2"),
        *pairs(("facts", SECOND), ("instants", SECOND),
               ("", "FROM @0@ |> JOIN @1@ ON a.k = b.k@near@ |> WHERE true@final@ |> SELECT a.id AS"
                    " x, b.id AS y")),
        *over("facts", "SELECT count(*) AS n, max(y) AS m@close@ FROM @0@, LATERAL (SELECT a + b AS"
              " y) GROUP BY window(ts, '5 SECONDS')", kind="window()"),
        *over("facts", "SELECT count(*) AS n, max(y) AS m@close@ FROM @0@, LATERAL (SELECT a + b AS"
              " y) GROUP BY session_window(ts, '2 SECONDS')", kind="session_window()"),
    ],
    "joins on fractional seconds": [
        *pairs(
            ("instants", HALF), ("instants", HALF),
            *((join, _JOINED.format(join)) for join in ("", "LEFT", "RIGHT", "FULL")),
            *((join, _HALVES.format(join)) for join in ("LEFT SEMI", "LEFT ANTI")),
        ),
        *pairs(("instants", SECOND), ("instants", HALF), ("", _JOINED.format(""))),
        *pairs(("instants", "RANGE 1 MICROSECOND"), ("instants", "RANGE 500001 MICROSECONDS"),
               ("", _JOINED.format(""))),
        *pairs(("instants", "RANGE 1500 MILLISECONDS"), ("facts", SECOND),
               ("", _JOINED.format("")), ("LEFT", _JOINED.format("LEFT"))),
        *windows("instants", "RANGE 500 MILLISECONDS SLIDE 500 MILLISECONDS",
                 "SELECT count(*) AS n, max(id) AS y FROM @0@"),
        *over("instants", "SELECT count(*) AS n@close@ FROM @0@ GROUP BY"
              " session_window(ts, '500 MILLISECONDS')", kind="session_window()"),
    ],
    "an aggregate over a window of which no tuple passes WHERE": [
        *windows("facts", TEN, _NOTHING.format("a"), "SELECT count(*) AS n FROM @0@ WHERE false",
                 "SELECT count(*) AS n, @end@ AS until FROM @0@ WHERE a = 1",
                 "SELECT k, count(*) AS n FROM @0@ WHERE a > 1000 GROUP BY k",
                 "SELECT count(*) AS n FROM @0@ WHERE a > 1000 HAVING count(*) = 0",
                 "SELECT count(*) AS n, sum(a) AS t FROM (SELECT a FROM @0@ WHERE a = 4) q"),
        *windows("facts", "ROWS 2 SLIDE 2", _NOTHING.format("a")),
        *windows("spans", "RANGE 20 SECONDS", _NOTHING.format("v")),
        *two_windows(("facts", TEN), ("letters", TEN),
                     "SELECT count(*) AS n FROM @0@ JOIN @1@ ON a.id = b.id AND a.a > 1000"),
    ],
    "intervals": [
        *over(
            "spans",
            "SELECT id, sp FROM @0@",
            "SELECT id, sp + INTERVAL 1 DAY AS y, -sp AS z FROM @0@",
            "SELECT id, ts + sp AS y FROM @0@ WHERE sp < INTERVAL 1 HOUR",
            "SELECT * FROM @0@",
        ),
        *windows("spans", "ROWS 5", "SELECT sum(sp) AS t, max(sp) AS y FROM @0@",
                 "SELECT sp, count(*) AS n FROM @0@ GROUP BY sp"),
        *over("months", "SELECT id, mo FROM @0@", "SELECT id, DATE'2024-01-31' + mo AS y FROM @0@",
              "SELECT id FROM @0@ WHERE mo > INTERVAL 1 YEAR", "SELECT * FROM @0@"),
        *windows("months", "ROWS 5", "SELECT sum(mo) AS t FROM @0@",
                 "SELECT mo, count(*) AS n FROM @0@ GROUP BY mo"),
        *over("instants", "SELECT id, t - ts AS y FROM @0@",
              "SELECT id, make_interval(0, 1, 0, id) AS y FROM @0@",
              "SELECT id, make_ym_interval(1, CAST(id AS INT)) AS y FROM @0@",
              "SELECT id, INTERVAL 3 DAYS AS y, array(INTERVAL 1 HOUR) AS z FROM @0@"),
    ],
    "times of day": [
        *over("times", "SELECT id, t FROM @0@", "SELECT * FROM @0@ WHERE t > TIME'12:00:00'",
              "SELECT id, hour(t) AS h, CAST(t AS STRING) AS y FROM @0@",
              "SELECT id, t - t0 AS y FROM @0@"),
        *windows("times", "ROWS 5", "SELECT max(t) AS y FROM @0@",
                 "SELECT t, count(*) AS n FROM @0@ GROUP BY t"),
        *over("facts", "SELECT id, TIME'01:02:03' AS y FROM @0@"),
    ],
    "variants": [
        *over("variants", "SELECT id, va FROM @0@", "SELECT * FROM @0@ WHERE va IS NOT NULL",
              "SELECT id, variant_get(va, '$.a', 'int') AS y FROM @0@ WHERE id < 0",
              "SELECT id, try_variant_get(va, '$.a', 'int') AS y FROM @0@",
              "SELECT id, schema_of_variant(va) AS z FROM @0@",
              "SELECT id, va:b[1] AS y FROM @0@"),
        *over("facts", "SELECT id, parse_json('[1, null]') AS y FROM @0@"),
        *windows("variants", "ROWS 5", "SELECT count(va) AS n FROM @0@", "SELECT id, va FROM @0@"),
    ],
    "microseconds of CSV and JSON": [
        *(
            case
            for source in ("csv", "json")
            for case in (
                *over(f"{source}_lines", "SELECT id, ts FROM @0@", "SELECT * FROM @0@",
                      "SELECT id, unix_micros(ts) AS y FROM @0@ WHERE v < 4"),
                *windows(f"{source}_lines", "RANGE 1 SECOND",
                         "SELECT count(*) AS n, max(ts) AS y FROM @0@"),
                to_files(over("instants", "SELECT id, ts, t FROM @0@")[0], source),
            )
        ),
    ],
    "the session's time zone, on both sides of its clock changes": [
        *over("instants", "SELECT id, hour(t) AS h, CAST(t AS DATE) AS y FROM @0@",
              "SELECT id, CAST(t AS STRING) AS s FROM @0@",
              "SELECT id, date_trunc('DAY', t) AS y FROM @0@",
              "SELECT id, date_format(t, 'yyyy-MM-dd HH:mm z') AS z FROM @0@",
              "SELECT id, t + INTERVAL 1 DAY AS y, t + INTERVAL 24 HOURS AS z FROM @0@",
              "SELECT id, CAST(t AS TIMESTAMP_NTZ) AS y FROM @0@ WHERE hour(t) > 1",
              "SELECT id, to_timestamp('2024-03-31 02:30:00') AS y FROM @0@",
              "SELECT id FROM @0@ WHERE t < '2024-03-31 03:30:00'"),
        *windows("instants", "RANGE 1 SECOND",
                 "SELECT hour(ts) AS h, count(*) AS n FROM @0@ GROUP BY hour(ts)",
                 "SELECT count(*) AS n, @start@ AS since, @end@ AS until FROM @0@"),
        *over("instants", "SELECT count(*) AS n, CAST(window.start AS STRING) AS y@close@ FROM @0@"
              " GROUP BY window(ts, '1 SECOND')", kind="window()"),
    ],
    **NAMES,
}  # fmt: skip
