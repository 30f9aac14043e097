SELECT s.location
FROM sensors s FULL JOIN VALUES ('a') AS t(place)
  ON s.location = t.place AND s.temperature > (SELECT max(n) FROM VALUES (1) AS x(n))
-- expect
-- refused: query 'q', line 2: JOIN cannot run continuously without a window
