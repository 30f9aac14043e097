SELECT
  DISTINCT location FROM sensors
-- expect
-- nodes: Distinct Project LogicalRDD
-- refused: query 'q', line 2: DISTINCT cannot run continuously
-- fix: drop DISTINCT
