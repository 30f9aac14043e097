SELECT location FROM sensor
-- expect
-- refused: query 'q': there is no stream 'sensor'. Did you mean 'sensors'? Known: parcels, sensors.
