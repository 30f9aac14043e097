SELECT location FROM sensors
INTERSECT
SELECT location FROM parcels
-- expect
-- nodes: Intersect Project LogicalRDD
-- refused: query 'q', line 2: INTERSECT cannot run continuously without a window
