SELECT extract(HOUR FROM ts) AS hour, trim(BOTH 'x' FROM location) FROM sensors WHERE extract(DAY FROM ts) = 1
-- expect
-- predicate: extract(DAY FROM ts) = 1
-- output: extract(HOUR FROM ts)
-- output: trim(BOTH 'x' FROM location)
