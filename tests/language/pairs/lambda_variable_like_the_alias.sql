SELECT transform(ys, s -> s.value) AS values FROM sensors s
-- expect
-- output: transform(ys, s -> s.value)
