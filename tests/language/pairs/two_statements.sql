SELECT location FROM sensors; DROP TABLE sensors
-- expect
-- refused: query 'q'
