SELECT max(temperature) FROM sensors
-- expect
-- nodes: Aggregate SubqueryAlias LogicalRDD
-- refused: query 'q': GROUP BY or an aggregate cannot run continuously without a window
