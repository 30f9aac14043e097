"""The JVM wall: the only code that touches Spark's JVM objects and Catalyst's class names.

Sessions, plans and settings of Spark come in, plain values of Python go out.
"""
