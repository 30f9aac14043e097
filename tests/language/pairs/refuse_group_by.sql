SELECT location, count(*)
FROM sensors

GROUP BY location
-- expect
-- nodes: Aggregate SubqueryAlias LogicalRDD
-- refused: query 'q', line 4: GROUP BY or an aggregate cannot run continuously without a window
-- fix: write a window behind the stream
