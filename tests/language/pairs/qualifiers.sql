SELECT s.temperature AS t, s.humidity FROM sensors AS s WHERE s.temperature > s.humidity AND s.location = 's.location'
-- expect
-- predicate: temperature > humidity AND location = 's.location'
-- output: temperature
-- output: humidity
