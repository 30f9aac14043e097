SELECT location, x FROM sensors LATERAL VIEW explode(array(1, 2)) t AS x
-- expect
-- whole
