SELECT s.location
FROM sensors s,
LATERAL (SELECT * FROM parcels p WHERE p.location = s.location)
-- expect
-- refused: query 'q', line 3: a subquery over a stream cannot run continuously without a window
