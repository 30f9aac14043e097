SELECT location FROM sensors
UNION ALL
SELECT location FROM parcels
-- expect
-- nodes: Union Project LogicalRDD
-- refused: query 'q', line 2: UNION cannot run yet
-- fix: register one query for each part
