SELECT temperature + 1 AS b, b * 2 AS c FROM sensors
-- expect
-- whole
