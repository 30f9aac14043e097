SELECT /* one, two */ location, -- three, FROM four
       temperature -- five
FROM sensors -- WHERE six
WHERE temperature > 1 -- AND seven
  AND humidity < 2 /* eight */ -- nine
-- expect
-- predicate: temperature > 1 -- AND seven\n  AND humidity < 2
-- output: location
-- output: temperature
