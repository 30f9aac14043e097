SELECT location FROM sensors
INTERSECT
SELECT location FROM parcels
-- expect
-- refused: query 'q', line 1: INTERSECT cannot run continuously without a window
