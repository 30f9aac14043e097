SELECT location, now() FROM sensors
-- expect
-- nodes: Project LogicalRDD
-- expressions: AttributeReference Now Alias
-- refused: query 'q': Now has no fixed answer
-- fix: use the tuple's own time column
