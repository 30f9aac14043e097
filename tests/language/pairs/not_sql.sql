SELEC location FROM sensors
-- expect
-- refused: query 'q': the text cannot be read
-- fix: correct it
