SELECT /*+ BROADCAST(sensors) */ location FROM sensors
-- expect
-- whole
