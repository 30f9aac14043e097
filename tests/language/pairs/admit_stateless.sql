SELECT explode(array(1)) FROM sensors
-- expect
-- nodes: Project Generate Filter SubqueryAlias View LogicalRDD
-- expressions: Explode CreateArray Literal
-- admitted
