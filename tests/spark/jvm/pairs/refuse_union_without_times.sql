SELECT location FROM sensors
UNION ALL
SELECT location FROM parcels
-- expect
-- refused: query 'q': UNION is in the order of time, and stream 'sensors' has no event_time.
-- fix: name the column with the time
