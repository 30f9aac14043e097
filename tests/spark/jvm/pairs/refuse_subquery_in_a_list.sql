SELECT location FROM sensors WHERE location IN (SELECT location FROM parcels)
-- expect
-- refused: query 'q', line 1: a subquery over a stream cannot run continuously without a window
