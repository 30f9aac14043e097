SELECT location FROM sensors
-- expect
-- nodes: Project MapPartitionsInPandas LogicalRDD
-- refused: query 'q': MapPartitionsInPandas cannot run continuously
-- fix: keep to SELECT
