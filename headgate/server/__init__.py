"""The control API: other processes of the same user query and change a running Headgate.

In: requests on loopback with a token. Out: JSON. Never: a decision of its own.
"""

from headgate.server.client import Client
from headgate.server.control import Control

__all__ = ["Client", "Control"]
