"""The command line.

In: words. Out: tables or JSON on stdout, talk on stderr, an exit code. Never imported by anybody.
"""

from headgate.cli.app import main

__all__ = ["main"]
