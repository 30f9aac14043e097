SELECT sensors.temperature FROM Sensors WHERE SENSORS.humidity < 5
-- expect
-- predicate: humidity < 5
-- output: temperature
