SELECT location FROM sensors
EXCEPT
SELECT location FROM parcels
-- expect
-- nodes: Except Project LogicalRDD
-- refused: query 'q', line 2: EXCEPT cannot run continuously without a window
