SELECT json_tuple(location, 'k') AS k FROM sensors
-- expect
-- whole
