"""Where parties listen: sockets, and which addresses only this machine reaches."""

from __future__ import annotations

import ipaddress
import socket

from dpcheckin.errors import InvalidParameter


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any free one.

    Args:
        host: an IPv4 or IPv6 address, or a name.
        port: from 0 to 65535.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
    except OSError as problem:
        opened.close()
        raise InvalidParameter("port", port, f"free on {host} ({problem.strerror})") from None
    opened.listen(2048)
    opened.setblocking(False)
    return opened


def is_loopback(host: str) -> bool:
    """Does only this machine reach it?"""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
