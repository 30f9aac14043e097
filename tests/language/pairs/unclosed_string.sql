SELECT location FROM sensors WHERE location = 'a
-- expect
-- refused: query 'q': the text cannot be read
-- fix: correct it
