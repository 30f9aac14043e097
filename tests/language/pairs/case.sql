SELECT CASE WHEN temperature > 35 THEN 'hot' ELSE 'cold' END AS feel FROM sensors WHERE CASE location WHEN 'a' THEN true END
-- expect
-- predicate: CASE location WHEN 'a' THEN true END
-- output: CASE WHEN temperature > 35 THEN 'hot' ELSE 'cold' END
