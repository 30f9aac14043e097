SELECT location FROM sensors
WHERE temperature > (
  SELECT max(temperature) FROM sensors)
-- expect
-- refused: query 'q', line 3: a subquery over a stream cannot run continuously without a window
-- fix: write a window after the stream
