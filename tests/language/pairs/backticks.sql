SELECT `temperature`, `s`.`humidity`, `odd, name` FROM `sensors` `s` WHERE `s`.`from` = 1
-- expect
-- predicate: `from` = 1
-- output: `temperature`
-- output: `humidity`
-- output: `odd, name`
