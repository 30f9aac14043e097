SELECT location FROM sensors WHERE temperature > (SELECT 1)
-- expect
-- nodes: Project Filter LogicalRDD
-- expressions: AttributeReference GreaterThan ScalarSubquery
-- refused: query 'q': a subquery (ScalarSubquery) cannot run continuously without a window
