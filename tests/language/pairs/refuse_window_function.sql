SELECT location,
  rank() OVER (ORDER BY ts)
FROM sensors
-- expect
-- nodes: Project Window Project LogicalRDD
-- refused: query 'q', line 2: OVER cannot run continuously without a window
-- fix: write a window behind the stream
