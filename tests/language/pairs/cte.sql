WITH hot AS (SELECT * FROM sensors WHERE temperature > 35) SELECT location FROM hot
-- expect
-- whole
