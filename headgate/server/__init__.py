"""The page and the control API: browsers and commands query and change a running Headgate.

In: requests with a token, on loopback unless told otherwise. Out: the page, JSON, metrics.
Never decides anything itself.
"""

from headgate.server.address import Address
from headgate.server.client import Client
from headgate.server.control import Control

__all__ = ["Address", "Client", "Control"]
