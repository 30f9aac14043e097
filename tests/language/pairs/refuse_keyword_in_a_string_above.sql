SELECT 'ORDER BY' AS a
FROM sensors -- ORDER BY
ORDER BY a
-- expect
-- nodes: Sort Project LogicalRDD
-- refused: query 'q', line 3: ORDER BY cannot run continuously
