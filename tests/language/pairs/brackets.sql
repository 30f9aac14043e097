SELECT array(1, 2)[0], struct(temperature, humidity) AS pair, map('a, b', 1)['a, b'] FROM sensors
-- expect
-- output: array(1, 2)[0]
-- output: struct(temperature, humidity)
-- output: map('a, b', 1)['a, b']
