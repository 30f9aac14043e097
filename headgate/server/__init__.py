"""The control API: a running Headgate is asked and changed by other processes of its user.

In: requests on loopback with a token. Out: JSON. Never: a decision of its own.
"""

from headgate.server.client import Client
from headgate.server.control import Control

__all__ = ["Client", "Control"]
