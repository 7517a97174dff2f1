"""TLS: contexts for servers and clients, and a small certificate authority for tests and trials.

A deployment brings its own certificates; `make_authority` and `issue` are for machines that have none, such as tests
and the demonstration. Keys are written for their owner's eyes only.
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
from dpcheckin.service.storage.files import check_secret, make_folder, write_secret

_AUTHORITY_DAYS, _SERVER_DAYS = 365, 90
_SIGNING = ("key_cert_sign", "crl_sign")
_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    *_SIGNING,
    "encipher_only",
    "decipher_only",
)


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
    """What a connection to an `address` checks certificates with, as httpx takes it: always behind `https`.

    `authority`: PEM file of the only one to believe; None: those of the system.
    """
    return client_context(authority) if address.startswith("https") else True


def make_authority(folder: Path, name: str = "dpcheckin test authority") -> Pair:
    """A self-signed authority of that common name in `folder`, made if need be: `authority.pem` and `authority.key`."""
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    built = _builder(name, None, key, _AUTHORITY_DAYS).add_extension(identifier, critical=False)
    return _written(folder, "authority", key, built.sign(key, hashes.SHA256()))


def issue(folder: Path, authority: Pair, *hosts: str, name: str = "server") -> Pair:
    """A server certificate of the `authority` for names or addresses (`hosts`), in `folder`: `server.pem` and
    `server.key`, or as `name` says.
    """
    issuer = x509.load_pem_x509_certificate(authority.certificate.read_bytes())
    signer = serialization.load_pem_private_key(authority.key.read_bytes(), password=None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise InvalidParameter("authority", str(authority.key), "a key made by make_authority")
    key = ec.generate_private_key(ec.SECP256R1())
    built = _builder(hosts[0], issuer.subject, key, _SERVER_DAYS)
    for extension in (
        x509.SubjectAlternativeName([_host(host) for host in hosts]),
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]),
        x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
    ):
        built = built.add_extension(extension, critical=False)
    return _written(folder, name, key, built.sign(signer, hashes.SHA256()))


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(
    name: str, issuer: x509.Name | None, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    """A certificate of this common name, valid for some days; without an issuer that of an authority, its own."""
    now = datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    authority = issuer is None
    usage = dict.fromkeys(_USAGES, False) | dict.fromkeys(_SIGNING if authority else ("digital_signature",), True)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
        .add_extension(x509.KeyUsage(**usage), critical=True)
    )


def _written(folder: Path, name: str, key: ec.EllipticCurvePrivateKey, built: x509.Certificate) -> Pair:
    make_folder(folder)
    pair = Pair(folder / f"{name}.pem", folder / f"{name}.key")
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_secret(pair.key, secret)
    pair.certificate.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    return pair
