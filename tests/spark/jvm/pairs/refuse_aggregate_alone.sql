SELECT max(temperature) FROM sensors
-- expect
-- refused: query 'q', line 1: GROUP BY or an aggregate cannot run continuously without a window
