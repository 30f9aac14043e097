SELECT
  DISTINCT location FROM sensors
-- expect
-- nodes: Distinct Project LogicalRDD
-- refused: query 'q', line 2: DISTINCT cannot run continuously
-- fix: drop it and make the results distinct where you read them
