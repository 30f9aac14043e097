SELECT *, temperature - humidity AS excess FROM sensors
-- expect
-- output: `location`
-- output: `temperature`
-- output: `humidity`
-- output: `ts`
-- output: temperature - humidity
