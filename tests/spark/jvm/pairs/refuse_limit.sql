SELECT location FROM sensors
LIMIT 10
-- expect
-- refused: query 'q', line 2: LIMIT cannot run continuously
-- fix: drop it and select the rows you want by a condition
