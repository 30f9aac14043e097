SELECT location FROM sensors WHERE temperature IS DISTINCT FROM humidity AND humidity > 1
-- expect
-- predicate: temperature IS DISTINCT FROM humidity AND humidity > 1
-- output: location
