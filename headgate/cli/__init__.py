"""The command line.

In: arguments. Out: tables or JSON on stdout, messages on stderr, an exit code. No other package
imports it.
"""

from headgate.cli.app import main

__all__ = ["main"]
