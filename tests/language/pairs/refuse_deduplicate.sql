SELECT location FROM sensors
-- expect
-- nodes: Deduplicate Project LogicalRDD
-- refused: query 'q': DISTINCT cannot run continuously without a window
-- fix: write a window behind the stream
