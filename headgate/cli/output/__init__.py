"""What commands print: tables of reports, measures and policies, and the progress of long work.

In: reports and statuses. Out: text. Nothing here asks a run or reads a file.
"""
