# SPDX-License-Identifier: Apache-2.0
"""Certificates and tokens for tests, made here: authorities, what they signed, and keys like Google's."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


class Authority:
    """Signs certificates."""

    def __init__(self, name: str, folder: Path) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self._key.public_key(), DAY)
        ca = x509.BasicConstraints(ca=True, path_length=None)
        certificate = builder.add_extension(ca, critical=True).sign(self._key, hashes.SHA256())
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def _builder(self, subject: x509.Name, key: Any, lasts: datetime.timedelta) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 30 * DAY)
            .not_valid_after(now + lasts)
        )

    def sign(self, name: str, *alternatives: x509.GeneralName, lasts: datetime.timedelta = DAY) -> tuple[Path, Path]:
        """The files of a certificate with these names, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(subject, key.public_key(), lasts)
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        pem, secret = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        plain = serialization.NoEncryption()
        secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
        return pem, secret


def dns(name: str) -> x509.DNSName:
    return x509.DNSName(name)


def loopback() -> x509.IPAddress:
    return x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
