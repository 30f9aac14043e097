SELECT * FROM sensors WHERE humidity < 2
-- expect
-- predicate: humidity < 2
-- output: `location`
-- output: `temperature`
-- output: `humidity`
-- output: `ts`
