SELECT location FROM sensors WHERE temperature > 1; SELECT 2
-- expect
-- refused: query 'q'
