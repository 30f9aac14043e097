"""Who is admitted: the host that a request names, where it comes from, and its token."""

import ipaddress
import secrets
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import Request

from headgate.server import control

TOKEN_FIX = (
    "Fix: send the header `Authorization: Bearer TOKEN` with the token of"
    f" {control.FILE} in the state directory"
)


@dataclass(frozen=True)
class Admission:
    """The rules by which requests are admitted.

    A page of another site can make a browser send requests here, even with the name of that site
    (DNS rebinding). Such requests name a host that is not ours, or come from another origin.

    Args:
        token: allows every request.
        read_token: allows GET.
        names: host names of the run, besides localhost and IP addresses, which no site can take.
        open_metrics: whether /metrics needs no token.
    """

    token: str
    read_token: str
    names: frozenset[str] = frozenset()
    open_metrics: bool = False

    def refusal(self, request: Request) -> tuple[int, str] | None:
        """Return the code and the sentence that answer a request that is not admitted."""
        host = request.headers.get("host", "")
        if not self._is_ours(_name_of(host)):
            return 403, (
                f"the host {host[:100]!r} is not a name of this run.\nFix: use an IP address or"
                " localhost, or start with --allow-host NAME"
            )
        origin = request.headers.get("origin")
        if origin is not None and not self._is_own_origin(origin, host):
            return 403, (
                f"the origin {origin[:100]!r} is not this run.\nFix: behind a proxy, start with"
                " --allow-host NAME"
            )
        return None if self._is_open(request) else self._token_refusal(request)

    def _is_ours(self, name: str) -> bool:
        if name == "localhost" or name in self.names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _is_own_origin(self, origin: str, host: str) -> bool:
        try:
            place = urlsplit(origin)
            return place.netloc.lower() == host.lower() or place.hostname in self.names
        except ValueError:
            return False

    def _is_open(self, request: Request) -> bool:
        """Return True if a request needs no token: the health, and the page without its data."""
        path = request.url.path
        if request.method not in ("GET", "HEAD"):
            return False
        if path in ("/health", "/ready", "/") or path.startswith("/page/"):
            return True
        return path == "/metrics" and self.open_metrics

    def _token_refusal(self, request: Request) -> tuple[int, str] | None:
        sent = request.headers.get("authorization", "").encode()
        if secrets.compare_digest(sent, f"Bearer {self.token}".encode()):
            return None
        if not (self.read_token and secrets.compare_digest(sent, self._read.encode())):
            return 401, f"the token is missing or wrong.\n{TOKEN_FIX}"
        if request.method in ("GET", "HEAD"):
            return None
        return 403, f"the read-only token allows no change.\n{TOKEN_FIX}"

    @property
    def _read(self) -> str:
        return f"Bearer {self.read_token}"


def _name_of(host: str) -> str:
    """Return the name in a Host header, without its port.

    >>> _name_of("localhost:4747"), _name_of("[::1]:4747"), _name_of("Example.com.")
    ('localhost', '::1', 'example.com')
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
    return name.rstrip(".")
