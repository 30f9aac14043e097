SELECT ALL temperature FROM sensors
-- expect
-- output: temperature
