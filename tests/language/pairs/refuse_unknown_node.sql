SELECT location FROM sensors
-- expect
-- nodes: Project MapPartitionsInPandas LogicalRDD
-- refused: query 'q': MapPartitionsInPandas cannot run continuously
-- fix: write a window behind the stream
