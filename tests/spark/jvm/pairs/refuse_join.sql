SELECT *
FROM sensors s
  JOIN parcels p ON s.location = p.location
-- expect
-- refused: query 'q', line 3: JOIN cannot run continuously without a window
-- fix: write a window after each stream
