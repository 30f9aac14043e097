SELECT location, now() FROM sensors
-- expect
-- refused: query 'q', line 1: Now has no fixed answer
-- fix: use the tuple's own time column
