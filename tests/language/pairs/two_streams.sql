SELECT location FROM sensors, parcels
-- expect
-- refused: query 'q': FROM names 2 streams.
-- fix: read exactly one stream
