SELECT 'ORDER BY' AS a
FROM sensors -- ORDER BY
ORDER BY a
-- expect
-- refused: query 'q', line 3: ORDER BY cannot run continuously
