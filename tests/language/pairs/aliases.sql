SELECT temperature AS t, humidity h, location AS `the place`, ts FROM sensors
-- expect
-- output: temperature
-- output: humidity
-- output: location
-- output: ts
