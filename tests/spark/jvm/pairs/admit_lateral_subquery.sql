SELECT s.*, n, part, top
FROM sensors s,
LATERAL (SELECT humidity + 1 AS n),
LATERAL explode(array(temperature, humidity)) AS t(part),
LATERAL (SELECT max(v) AS top FROM VALUES (1), (50) AS v(v) WHERE v < s.humidity)
-- expect
-- admitted
