SELECT location
FROM sensors TABLESAMPLE (10 PERCENT)
-- expect
-- nodes: Project Sample LogicalRDD
-- refused: query 'q', line 2: TABLESAMPLE has no fixed answer
-- fix: sample by a hash
