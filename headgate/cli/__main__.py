"""`python -m headgate.cli`."""

from headgate.cli.app import main

main()
