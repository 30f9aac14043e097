"""Names that were once misread: of columns, streams and aliases; void and duplicate columns."""

from differential.by_hand import SECOND, TEN, over, pairs, to_files, two_windows, windows
from differential.cases import Case

NAMES: dict[str, list[Case]] = {
    "columns with a literal's name, a keyword's or a number's": over(
        "named",
        "SELECT `true` FROM @0@",
        "SELECT `true` AS y, true AS z FROM @0@",
        "SELECT `null`, `true` FROM @0@ WHERE `true` = 1",
        "SELECT `null` AS y, null AS z, 'null' AS w FROM @0@",
        "SELECT `1`, 1 AS one FROM @0@ WHERE `1` > 11",
        "SELECT `1a` + `1` AS y FROM @0@",
        "SELECT `select`, `from` FROM @0@ WHERE `select` > 3",
        "SELECT `a.b` AS y, `a``b` AS z FROM @0@",
        "SELECT `a.b` FROM @0@",
        "SELECT date, `end`, _x FROM @0@ WHERE date > DATE'2024-01-01'",
        "SELECT `current_date` FROM @0@",
        "SELECT `true` AS `null`, `null` AS `true` FROM @0@",
        "SELECT id AS `1`, `1` AS id FROM @0@",
        "SELECT * FROM @0@",
        "SELECT id FROM @0@ WHERE `true` IS NULL OR true",
        "SELECT id FROM @0@ WHERE `null` IS NULL",
    ),
    "such columns in windows": windows(
        "named", TEN,
        "SELECT `true`, count(*) AS n FROM @0@ GROUP BY `true`",
        "SELECT `null`, sum(`1`) AS t FROM @0@ GROUP BY `null`",
        "SELECT `1`, count(*) AS n FROM @0@ GROUP BY `1`",
        "SELECT 1 AS `1`, count(*) AS n FROM @0@ GROUP BY 1",
        "SELECT max(`a.b`) AS y, min(`a``b`) AS z, sum(`select`) AS t FROM @0@",
        "SELECT `true` AS `null` FROM @0@ WHERE `1a` > 1",
    ),
    "a column called window": [
        *over("named", "SELECT window FROM @0@",
              "SELECT window + 1 AS y FROM @0@ WHERE window > 3"),
        *windows(
            "named", TEN,
            "SELECT window, id FROM @0@",
            "SELECT window, count(*) AS n FROM @0@ GROUP BY window",
            "SELECT sum(window) AS t FROM @0@",
        ),
        *windows("named", "ROWS 3", "SELECT window FROM @0@", "SELECT max(window) AS y FROM @0@"),
        *over("named", "SELECT id AS window FROM @0@"),
    ],
    "a stream called window": [
        *over("window", "SELECT * FROM @0@", "SELECT window.id, window.window FROM @0@"),
        *windows("window", "ROWS 3", "SELECT id, v FROM @0@", "SELECT count(*) AS n FROM @0@"),
        *windows("window", "RANGE 20 SECONDS", "SELECT max(v) AS y FROM @0@"),
    ],
    "an alias called window": [
        *over("facts", "SELECT window.id, window.k FROM @0@", alias="window"),
        *windows("facts", "ROWS 3", "SELECT window.a FROM @0@", alias="window"),
        *windows("facts", TEN, "SELECT sum(window.a) AS t FROM @0@", alias="window"),
    ],
    "a stream called date": [
        *over("date", "SELECT date, date.id FROM @0@", "SELECT `true` FROM @0@ WHERE date IS NULL"),
        *windows("date", "ROWS 3 SLIDE 2", "SELECT max(date) AS y, sum(`count`) AS n FROM @0@"),
    ],
    "a void column": [
        *over(
            "facts",
            "SELECT NULL AS nothing, id FROM @0@",
            "SELECT id, NULL AS x, a AS y, NULL AS z FROM @0@ WHERE a > 1",
            "SELECT id, array(NULL) AS x FROM @0@",
            "SELECT id, explode(array()) AS x FROM @0@",
        ),
        *over(
            "voids",
            "SELECT nothing, other FROM @0@",
            "SELECT other, nothing, id FROM @0@ WHERE other > 1",
            "SELECT * FROM @0@",
            "SELECT id, coalesce(nothing, other) AS y FROM @0@",
            "SELECT id FROM @0@ WHERE nothing IS NULL",
        ),
        *windows(
            "voids", "ROWS 4 SLIDE 4",
            "SELECT nothing, other FROM @0@",
            "SELECT count(nothing) AS n, max(other) AS y FROM @0@",
        ),
        *windows("facts", TEN, "SELECT k, NULL AS x, count(*) AS n FROM @0@ GROUP BY k"),
    ],
    "SELECT * over a window": [
        *windows("facts", TEN, "SELECT * FROM @0@", "SELECT * FROM @0@ WHERE a > 2"),
        *windows("facts", "ROWS 3 SLIDE 2", "SELECT * FROM @0@"),
        *windows("facts", TEN, "SELECT x.* FROM @0@", "SELECT x.*, x.a + 1 AS y FROM @0@",
                 alias="x"),
        *windows("facts", TEN, "SELECT * FROM (SELECT * FROM @0@) q WHERE a < 4",
                 "SELECT * FROM @0@ ORDER BY id LIMIT 2"),
        *two_windows(("letters", TEN), ("instants", TEN),
                     "SELECT a.*, b.k FROM @0@ JOIN @1@ ON a.id = b.id"),
    ],
    "a column twice": [
        to_files(case, "csv")
        for case in (
            *over("facts", "SELECT id, id FROM @0@", "SELECT k, a AS k FROM @0@",
                  "SELECT id, a AS ID, k FROM @0@ WHERE a > 1",
                  "SELECT id, explode(ai) AS id FROM @0@"),
            *over("instants", "SELECT *, id FROM @0@"),
            *windows("facts", TEN, "SELECT k, k FROM @0@",
                     "SELECT k, count(*) AS k FROM @0@ GROUP BY k",
                     "SELECT a, b AS a, @end@ AS a FROM @0@ ORDER BY id LIMIT 2"),
            *pairs(("facts", SECOND), ("instants", SECOND),
                   ("", "SELECT a.k, b.k FROM @0@ JOIN @1@ ON a.k = b.k@near@ WHERE true@final@")),
            *over("facts", "SELECT k, count(*) AS k@close@ FROM @0@ GROUP BY k,"
                  " window(ts, '10 SECONDS')", kind="window()"),
        )
    ],
}  # fmt: skip
