SELECT *
FROM sensors,
LATERAL (SELECT 1)
-- expect
-- nodes: Project LateralJoin LogicalRDD
-- refused: query 'q', line 3: LATERAL cannot run continuously without a window
