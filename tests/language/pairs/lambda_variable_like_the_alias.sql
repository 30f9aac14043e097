SELECT transform(ys, s -> s.value) AS values FROM sensors s
-- expect
-- whole
