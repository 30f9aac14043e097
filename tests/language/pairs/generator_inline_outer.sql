SELECT inline_outer(array(struct(1))) AS x FROM sensors
-- expect
-- whole
