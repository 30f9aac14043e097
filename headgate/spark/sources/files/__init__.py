"""Files in a directory as a source: found, read from where the last poll ended, and parsed.

In: a stream's path and format. Out: tuples, and the records that cannot be parsed.
Never writes a file.
"""
