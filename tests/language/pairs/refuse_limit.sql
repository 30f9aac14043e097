SELECT location FROM sensors
LIMIT 10
-- expect
-- nodes: GlobalLimit LocalLimit Project LogicalRDD
-- refused: query 'q', line 2: LIMIT cannot run continuously
-- fix: drop it and select the rows you want by a condition
