SELECT 1
-- expect
-- refused: query 'q': FROM names 0 streams.
-- fix: read exactly one stream
