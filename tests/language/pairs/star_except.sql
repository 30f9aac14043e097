SELECT * EXCEPT (ts) FROM sensors
-- expect
-- whole
