SELECT transform(array(1, 2), x -> x + temperature) AS xs, aggregate(ys, 0, (a, b) -> a + b) FROM sensors WHERE exists(ys, y -> y > 1)
-- expect
-- predicate: exists(ys, y -> y > 1)
-- output: transform(array(1, 2), x -> x + temperature)
-- output: aggregate(ys, 0, (a, b) -> a + b)
