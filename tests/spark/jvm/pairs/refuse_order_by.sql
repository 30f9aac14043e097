SELECT location
FROM sensors
WHERE temperature > 1
ORDER BY location
-- expect
-- refused: query 'q', line 4: ORDER BY cannot run continuously: a stream has no last row
-- fix: drop it and order the results where you read them
