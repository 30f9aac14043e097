SELECT 'FROM x, (y WHERE {z}' AS a, "it''s; \"so\" [" AS b FROM sensors WHERE location <> 'a -- b, /* c' AND location <> 'it\'s FROM'
-- expect
-- predicate: location <> 'a -- b, /* c' AND location <> 'it\'s FROM'
-- output: 'FROM x, (y WHERE {z}'
-- output: "it''s; \"so\" ["
