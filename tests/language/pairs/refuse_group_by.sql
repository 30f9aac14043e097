SELECT location, count(*)
FROM sensors

GROUP BY location
-- expect
-- nodes: Aggregate SubqueryAlias LogicalRDD
-- refused: query 'q', line 4: GROUP BY or an aggregate cannot run continuously yet
-- fix: keep to SELECT
