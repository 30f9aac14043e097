SELECT reading.s.value, m['s.k'] FROM sensors s WHERE s.reading.value > 1
-- expect
-- predicate: reading.value > 1
-- output: reading.s.value
-- output: m['s.k']
