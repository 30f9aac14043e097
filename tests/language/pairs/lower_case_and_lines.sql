select location
     , temperature
  from sensors
 where temperature > 1
    or location like '%from%'
-- expect
-- predicate: temperature > 1\n    or location like '%from%'
-- output: location
-- output: temperature
