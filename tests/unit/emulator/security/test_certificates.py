"""Tests of certificates: the generated one, and errors in a user's own."""

from __future__ import annotations

import ipaddress
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from emulator.exceptions import StartupError
from emulator.security.certificates import Certificates, find_fault

OUTSIDE = "192.0.2.77"


class Pair:
    """A certificate and its key, as a user's authority makes them."""

    def __init__(
        self,
        folder: Path,
        *names: str,
        issuer: Pair | None = None,
        begins: timedelta = timedelta(days=-1),
        lasts: timedelta = timedelta(days=90),
    ) -> None:
        self.private = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0] if names else "Lab Root")])
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if issuer is None else issuer.content.subject)
            .public_key(self.private.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + begins)
            .not_valid_after(now + begins + lasts)
            .add_extension(x509.BasicConstraints(ca=not names, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.private.public_key()), critical=False)
        )
        if names:
            found = [
                x509.IPAddress(ipaddress.ip_address(each)) if each[0].isdigit() else x509.DNSName(each)
                for each in names
            ]
            builder = builder.add_extension(x509.SubjectAlternativeName(found), critical=False)
        signer = self if issuer is None else issuer
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.private.public_key()), critical=False
        )
        self.content: x509.Certificate = builder.sign(signer.private, hashes.SHA256())
        self.certificate, self.key = folder / f"{id(self)}.crt", folder / f"{id(self)}.key"
        chain = [self.content, *([] if issuer is None else [issuer.content])]
        self.certificate.write_bytes(b"".join(each.public_bytes(Encoding.PEM) for each in chain))
        self.key.write_bytes(self.encode(NoEncryption()))

    def encode(self, encryption: KeySerializationEncryption) -> bytes:
        return self.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


def trusts(certificates: Certificates, name: str, connected: str) -> bool:
    """Whether a client that has the bundle takes what it is shown for ``name``."""
    trusted = x509.load_pem_x509_certificates(certificates.bundle.read_bytes())
    return find_fault(certificates.choose(connected), trusted, name) is None


def refuse(state_dir: Path, certificate: Path, key: Path, advertised: str | None = OUTSIDE) -> str:
    with pytest.raises(StartupError) as refused:
        Certificates(state_dir, advertised, certificate, key)
    text = str(refused.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


def test_the_generated_one_holds_where_the_emulator_is_asked(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path, OUTSIDE)
    for name, connected in (("127.0.0.1", "127.0.0.1"), ("localhost", "::1"), (OUTSIDE, OUTSIDE)):
        assert trusts(certificates, name, connected)
    assert not trusts(certificates, "172.17.0.1", "172.17.0.1")
    certificates.include("172.17.0.1")
    assert trusts(certificates, "172.17.0.1", "::ffff:172.17.0.1")
    assert not trusts(certificates, "192.0.2.78", OUTSIDE)


def test_a_host_name_may_have_an_underscore(tmp_path: Path) -> None:
    assert trusts(Certificates(tmp_path, "build_host.example"), "build_host.example", OUTSIDE)


def test_the_next_emulator_is_trusted_by_the_same_file(tmp_path: Path) -> None:
    first = Certificates(tmp_path)
    trusted = first.bundle.read_bytes()
    second = Certificates(tmp_path, "lab.example")
    assert second.bundle.read_bytes() == trusted
    assert trusts(second, "lab.example", OUTSIDE)


def test_only_the_owner_reads_keys_and_nobody_finds_one_in_what_is_trusted(tmp_path: Path) -> None:
    pair = Pair(tmp_path, OUTSIDE)
    both = tmp_path / "both.pem"
    both.write_bytes(pair.key.read_bytes() + pair.certificate.read_bytes())
    certificates = Certificates(tmp_path, OUTSIDE, both, both)
    for name in ("authority.pem", "own.pem"):
        assert stat.S_IMODE((tmp_path / "tls" / name).stat().st_mode) == 0o600
    assert b"PRIVATE" not in certificates.bundle.read_bytes()
    assert [each.name for each in certificates.bundle.parent.iterdir()] == ["ca.pem"]


def test_the_users_is_shown_beyond_this_machine(tmp_path: Path) -> None:
    root = Pair(tmp_path)
    pair = Pair(tmp_path, "lab.example", issuer=root)
    certificates = Certificates(tmp_path, "lab.example", pair.certificate, pair.key)
    assert trusts(certificates, "lab.example", OUTSIDE)
    assert not trusts(certificates, "lab.example", "127.0.0.1")
    assert trusts(certificates, "127.0.0.1", "127.0.0.1"), "its own, to containers and commands"


def test_one_for_this_machine_is_shown_to_everybody(tmp_path: Path) -> None:
    pair = Pair(tmp_path, "127.0.0.1", "localhost", OUTSIDE)
    certificates = Certificates(tmp_path, OUTSIDE, pair.certificate, pair.key)
    assert all(trusts(certificates, name, name) for name in ("127.0.0.1", OUTSIDE))
    assert not (tmp_path / "tls" / "authority.pem").exists()


def test_what_cannot_be_used_is_reported(tmp_path: Path) -> None:
    root = Pair(tmp_path)
    right, other = (Pair(tmp_path, OUTSIDE, issuer=root) for _ in range(2))
    empty = tmp_path / "empty"
    empty.touch()
    assert "cannot be read: No such file" in refuse(tmp_path, tmp_path / "none", right.key)
    assert "cannot be read: Is a directory" in refuse(tmp_path, right.certificate, tmp_path)
    assert "holds no certificate" in refuse(tmp_path, empty, right.key)
    assert "holds no certificate" in refuse(tmp_path, right.key, right.key)
    assert "holds no private key" in refuse(tmp_path, right.certificate, empty)
    assert "give the two that were made together" in refuse(tmp_path, right.certificate, other.key)
    assert "has to be the first" in refuse(tmp_path, right.certificate, root.key)

    right.key.write_bytes(right.encode(BestAvailableEncryption(b"secret")))
    assert "has a password" in refuse(tmp_path, right.certificate, right.key)

    old = Pair(tmp_path, OUTSIDE, issuer=root, begins=timedelta(days=-9), lasts=timedelta(days=3))
    assert "expired on" in refuse(tmp_path, old.certificate, old.key)
    early = Pair(tmp_path, OUTSIDE, issuer=root, begins=timedelta(days=3))
    assert "set the clock, or wait" in refuse(tmp_path, early.certificate, early.key)

    assert f"is for {OUTSIDE}, and not for lab.example" in refuse(tmp_path, other.certificate, other.key, "lab.example")
    assert "and not for 127.0.0.1" in refuse(tmp_path, other.certificate, other.key, None)
    other.certificate.write_bytes(other.content.public_bytes(Encoding.PEM))
    assert "CN=Lab Root, is not there: append" in refuse(tmp_path, other.certificate, other.key)


def test_one_that_expires_soon_is_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pair = Pair(tmp_path, OUTSIDE, lasts=timedelta(days=5))
    Certificates(tmp_path, OUTSIDE, pair.certificate, pair.key)
    assert "renew it, and restart the emulator" in caplog.text


def test_a_damaged_authority_is_reported(tmp_path: Path) -> None:
    Certificates(tmp_path)
    (tmp_path / "tls" / "authority.pem").write_text("damaged")
    with pytest.raises(StartupError, match=r"authority.pem cannot be read .*: remove it"):
        Certificates(tmp_path)


def test_no_old_version_of_tls_is_spoken(tmp_path: Path) -> None:
    assert Certificates(tmp_path).choose("127.0.0.1").minimum_version == ssl.TLSVersion.TLSv1_2
