SELECT temperature FROM sensors WHERE humidity < 2;
-- expect
-- predicate: humidity < 2
-- output: temperature
