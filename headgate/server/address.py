"""Where the control API listens: host, port, names and TLS."""

import ipaddress
import socket
from dataclasses import dataclass
from pathlib import Path

from headgate.errors import ConfigRefused

PORT, PORTS = 4747, 100
"""The default port; if it is in use, the next free one of so many."""


@dataclass(frozen=True)
class Address:
    """Where to listen, and under which names.

    Args:
        port: None for the default port, or the next free one.
        names: host names by which clients may call the run, besides localhost and IP addresses.
        certificate, key: TLS files.
        allows_plain: whether an address other than loopback may be without TLS.

    Raises:
        ConfigRefused: the address is not loopback, and has neither TLS nor that permission.
    """

    host: str = "127.0.0.1"
    port: int | None = None
    names: tuple[str, ...] = ()
    certificate: str | None = None
    key: str | None = None
    allows_plain: bool = False

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ConfigRefused(
                path="--tls-cert", key="TLS", value=None,
                expected="given by both files: --tls-cert FILE and --tls-key FILE",
            )  # fmt: skip
        for option, file in (("--tls-cert", self.certificate), ("--tls-key", self.key)):
            if file is not None and not Path(file).is_file():
                raise ConfigRefused(path=option, key="file", value=file, expected="a file")
        if not (self.is_loopback or self.certificate or self.allows_plain):
            raise ConfigRefused(
                path="--host", key="address", value=self.host,
                expected="loopback, or given with --tls-cert and --tls-key, or with"
                " --allow-plain-http where nobody else can read the network",
            )  # fmt: skip

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def own_host(self) -> str:
        """The address by which a client on this machine connects."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)

    def listen(self) -> socket.socket:
        """Return a socket that listens.

        Raises:
            ConfigRefused: the port is in use, or this machine has no such address.
        """
        ports = range(PORT, PORT + PORTS) if self.port is None else [self.port]
        for port in ports:
            try:
                return self._listen(port)
            except OSError as error:
                refusal = error
        if self.port is None and self.is_loopback:
            return self._listen(0)
        raise ConfigRefused(
            path="--port", key="address", value=f"{self.host}:{ports[-1]}",
            expected=f"free, and an address of this machine: {refusal.strerror or refusal}",
        ) from refusal  # fmt: skip

    def _listen(self, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        return socket.create_server((self.host, port), family=family)
