FROM sensors |> WHERE temperature > 1 |> SELECT location
-- expect
-- whole
