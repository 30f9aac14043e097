SELECT to_json(struct(*)) AS packed FROM sensors
-- expect
-- whole
