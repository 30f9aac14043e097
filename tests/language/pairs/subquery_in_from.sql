SELECT location FROM (SELECT * FROM sensors) AS inner_part WHERE temperature > 1
-- expect
-- whole
