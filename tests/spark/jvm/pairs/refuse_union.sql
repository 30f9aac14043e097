SELECT location FROM
  (SELECT location FROM sensors
   UNION ALL
   SELECT location FROM parcels)
WHERE location > 'a'
-- expect
-- refused: query 'q', line 2: UNION cannot be nested inside a query.
-- fix: write SELECT ... UNION ALL SELECT ... at the top level
