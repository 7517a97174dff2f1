"""TLS: contexts for servers and clients, and a small certificate authority for tests and trials.

A deployment brings its own certificates; `make_authority` and `issue` are for machines that have
none, such as tests and the demonstration. Keys are written for their owner's eyes only.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.files import check_secret, make_folder, write_secret

__all__ = [
    "Pair",
    "client_context",
    "issue",
    "make_authority",
    "server_context",
    "verification",
    "write_secret",
]

_AUTHORITY_DAYS, _SERVER_DAYS = 365, 90


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


def server_context(pair: Pair) -> ssl.SSLContext:
    """TLS 1.2 or newer with this certificate."""
    for name, file in (("certificate", pair.certificate), ("key", pair.key)):
        if not file.is_file():
            raise InvalidParameter(f"tls_{name}", str(file), "a file")
    check_secret("tls_key", pair.key, group=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(pair.certificate, pair.key)
    except ssl.SSLError as problem:
        raise InvalidParameter(
            "tls_certificate", str(pair.certificate), f"a PEM certificate and its key ({problem})"
        ) from None
    return context


def client_context(authority: Path | None) -> ssl.SSLContext:
    """Certificates are always checked: against this authority, or the system's when None."""
    if authority is not None and not authority.is_file():
        raise InvalidParameter("tls_authority", str(authority), "a file")
    context = ssl.create_default_context(cafile=authority)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def verification(address: str, authority: Path | None) -> ssl.SSLContext | bool:
    """What a connection to a server checks certificates with, as httpx takes it.

    Args:
        address: the server's; certificates are always checked behind `https`.
        authority: PEM file of the only authority to believe; None: those of the system.
    """
    return client_context(authority) if address.startswith("https") else True


def make_authority(folder: Path, name: str = "dpcheckin test authority") -> Pair:
    """A self-signed authority in `folder`: `authority.pem` and `authority.key`.

    Args:
        folder: made when it is not there.
        name: common name of the authority.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    built = (
        _certificate(subject, subject, key.public_key(), _AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(authority=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _written(folder, "authority", key, built)


def issue(folder: Path, authority: Pair, *hosts: str, name: str = "server") -> Pair:
    """A server certificate for host names or addresses: `server.pem` and `server.key`.

    Args:
        folder: made when it is not there.
        authority: what `make_authority` made.
        hosts: names or addresses of the server.
        name: stem of the two files.
    """
    issuer = x509.load_pem_x509_certificate(authority.certificate.read_bytes())
    signer = serialization.load_pem_private_key(authority.key.read_bytes(), password=None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise InvalidParameter("authority", str(authority.key), "a key made by make_authority")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
    built = (
        _certificate(subject, issuer.subject, key.public_key(), _SERVER_DAYS)
        .add_extension(x509.SubjectAlternativeName([_host(h) for h in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
            critical=False,
        )
        .sign(signer, hashes.SHA256())
    )
    return _written(folder, name, key, built)


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _written(
    folder: Path, name: str, key: ec.EllipticCurvePrivateKey, built: x509.Certificate
) -> Pair:
    make_folder(folder)
    pair = Pair(folder / f"{name}.pem", folder / f"{name}.key")
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    write_secret(pair.key, secret)
    pair.certificate.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    return pair
