SELECT location FROM sensors
-- expect
-- nodes: Deduplicate Project LogicalRDD
-- refused: query 'q': DISTINCT cannot run continuously yet
-- fix: drop DISTINCT
