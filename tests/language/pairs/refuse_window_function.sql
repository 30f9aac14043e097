SELECT location,
  rank() OVER (ORDER BY ts)
FROM sensors
-- expect
-- nodes: Project Window Project LogicalRDD
-- refused: query 'q', line 2: OVER cannot run continuously yet
-- fix: drop the window function
