SELECT location FROM sensors
EXCEPT
SELECT location FROM parcels
-- expect
-- refused: query 'q', line 1: EXCEPT cannot run continuously without a window
