SELECT
  DISTINCT location FROM sensors
-- expect
-- refused: query 'q', line 1: DISTINCT cannot run continuously
-- fix: drop it and make the results distinct where you read them
