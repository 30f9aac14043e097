SELECT explode(map('a', 1)) AS (k, v) FROM sensors
-- expect
-- whole
