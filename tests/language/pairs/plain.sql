SELECT location, temperature + 1 AS next FROM sensors WHERE temperature > 35
-- expect
-- predicate: temperature > 35
-- output: location
-- output: temperature + 1
