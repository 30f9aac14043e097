SELECT location FROM catalog.sensors
-- expect
-- whole
