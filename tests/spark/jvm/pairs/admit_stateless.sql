SELECT explode(array(1)) FROM sensors
-- expect
-- admitted
