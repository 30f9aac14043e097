FROM sensors SELECT temperature WHERE humidity < 2
-- expect
-- predicate: humidity < 2
-- output: temperature
