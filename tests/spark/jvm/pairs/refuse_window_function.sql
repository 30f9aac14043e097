SELECT location,
  rank() OVER (ORDER BY ts)
FROM sensors
-- expect
-- refused: query 'q', line 1: OVER cannot run continuously without a window
-- fix: write a window after the stream
