"""Key and certificate that an emulator and its agents identify each other by."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from container_runtime.file_lock import hold_lock

if TYPE_CHECKING:
    from pathlib import Path

_YEARS = 20


def keep_key(folder: Path) -> Path:
    """Return the file with key and certificate, and create it on the first call."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "agent.pem"
    with hold_lock(folder / "agent.lock"):
        if path.exists():
            return path
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "smdebug-emulator")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            # The clocks of the machines may differ.
            .not_valid_before(now - timedelta(days=2))
            .not_valid_after(now + timedelta(days=365 * _YEARS))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        text = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ) + certificate.public_bytes(serialization.Encoding.PEM)
        unfinished = path.with_suffix(".tmp")
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:  # noqa: PTH123
            file.write(text)
        unfinished.replace(path)
    return path
