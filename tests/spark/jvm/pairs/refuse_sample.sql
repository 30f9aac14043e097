SELECT location
FROM sensors TABLESAMPLE (10 PERCENT)
-- expect
-- refused: query 'q', line 2: TABLESAMPLE has no fixed answer
-- fix: sample by a hash
