SELECT location, count(*)
FROM sensors

GROUP BY location
-- expect
-- refused: query 'q', line 4: GROUP BY or an aggregate cannot run continuously without a window
-- fix: write a window after the stream
