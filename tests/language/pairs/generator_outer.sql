SELECT explode_outer(array(1, 2)) AS x FROM sensors
-- expect
-- whole
