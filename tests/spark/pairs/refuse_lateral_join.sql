SELECT *
FROM sensors,
LATERAL (SELECT 1)
-- expect
-- refused: query 'q', line 2: LATERAL cannot run continuously without a window
