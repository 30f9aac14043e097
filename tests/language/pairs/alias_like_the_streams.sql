SELECT temperature AS s, s.humidity FROM sensors s
-- expect
-- output: temperature
-- output: humidity
