SELECT temperature FROM sensors
-- expect
-- output: temperature
