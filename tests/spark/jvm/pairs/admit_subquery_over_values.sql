SELECT location FROM sensors WHERE temperature > (SELECT max(n) FROM VALUES (1), (2) AS t(n))
-- expect
-- admitted
