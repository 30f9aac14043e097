SELECT a FROM sensors AS s(a, b, c, d)
-- expect
-- whole
