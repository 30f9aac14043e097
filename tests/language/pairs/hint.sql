SELECT /*+ REPARTITION(3) */ location FROM sensors
-- expect
-- whole
