SELECT temperature IS NOT DISTINCT FROM humidity AS same, location FROM sensors
-- expect
-- output: temperature IS NOT DISTINCT FROM humidity
-- output: location
