SELECT 24D * temperature AS a, 1.5BD AS b, X'1F' AS c, INTERVAL '1' DAY + ts AS d, temperature::DOUBLE FROM sensors WHERE temperature BETWEEN 1Y AND 3L
-- expect
-- predicate: temperature BETWEEN 1Y AND 3L
-- output: 24D * temperature
-- output: 1.5BD
-- output: X'1F'
-- output: INTERVAL '1' DAY + ts
-- output: temperature::DOUBLE
