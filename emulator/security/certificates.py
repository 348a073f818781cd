"""TLS certificates: a generated or the user's own, and the CA file for clients.

A generated certificate is signed by the emulator's own authority. It is generated at each start, for the addresses at
that time. Clients trust one file, which stays the same: containers that outlive an emulator trust the next one by it.
"""

import ipaddress
import logging
import os
import ssl
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from emulator.exceptions import StartupError

logger = logging.getLogger(__name__)

_FOLDER, _TRUSTED, _BUNDLE = "tls", "trusted", "ca.pem"
_LOCAL = ("127.0.0.1", "::1", "localhost")
# Clocks of machines differ.
_EARLY = timedelta(days=2)
# The longest validity that browsers accept.
_VALID = timedelta(days=825)
_AUTHORITY_VALID = timedelta(days=3650)
_SOON = timedelta(days=14)
# X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, …_LOCALLY, and …_VERIFY_LEAF_SIGNATURE
_NO_ISSUER = (2, 20, 21)
_MISMATCHES = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH


class Certificates:
    """The certificates that the emulator presents to clients.

    Attributes:
        bundle: the CA file for clients, alone in its folder.
    """

    def __init__(
        self, state_dir: Path, advertised: str | None = None, certificate: Path | None = None, key: Path | None = None
    ) -> None:
        """Read or generate the certificates.

        Args:
            state_dir: the state folder; keys are in its folder ``tls``, which only its owner may read.
            advertised: the address for other machines; None if it serves this machine only.
            certificate: the user's certificate, followed by its issuers; None to generate one.
            key: the key of the user's certificate.

        Raises:
            StartupError: a file is invalid; the text names it and says why.
        """
        folder = state_dir / _FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        self.bundle = folder / _TRUSTED / _BUNDLE
        self._folder = folder
        self._theirs: ssl.SSLContext | None = None
        # Whether the user's certificate is presented to all clients, or only to those on other machines.
        self._shown_here = False
        trusted: list[x509.Certificate] = []
        if certificate is not None and key is not None:
            chain = _read_chain(certificate, key)
            trusted += chain
            self._theirs = _build_context(certificate, key)
            self._shown_here = find_fault(self._theirs, chain, "127.0.0.1") is None
            asked = advertised or "127.0.0.1"
            if (fault := find_fault(self._theirs, chain, asked)) is not None:
                raise StartupError(_describe_fault(fault, certificate, chain, asked))
        self._names = [*_LOCAL, *([advertised] if advertised and self._theirs is None else [])]
        self._own: ssl.SSLContext | None = None
        if not self._shown_here:
            self._authority, self._authority_key = _keep_authority(folder / "authority.pem")
            trusted.insert(0, self._authority)
            self._own = self._sign()
        _write_private(self.bundle, b"".join(each.public_bytes(Encoding.PEM) for each in trusted), mode=0o644)

    def include(self, address: str) -> None:
        """Include another address of this machine in the generated certificate, that of the containers' bridge."""
        if address not in self._names:
            self._names.append(address)
            if self._own is not None:
                self._own = self._sign()

    def choose(self, address: str) -> ssl.SSLContext:
        """Return the TLS context for clients that connect to an IP address of this machine."""
        found = ipaddress.ip_address(address)
        if self._own is not None and (self._theirs is None or found.is_loopback or str(found) in self._names):
            return self._own
        assert self._theirs is not None
        return self._theirs

    # Built without trustme: it refuses host names with an underscore, and its authorities expire in the year 3000.
    def _sign(self) -> ssl.SSLContext:
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
        certificate = (
            _begin(key, "smdebug-emulator", self._authority.subject, now, _VALID)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(map(_name, self._names)), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._authority_key.public_key()), critical=False
            )
            .sign(self._authority_key, hashes.SHA256())
        )
        path = self._folder / "own.pem"
        _write_private(path, _encode_key(key) + certificate.public_bytes(Encoding.PEM))
        return _build_context(path, path)


def _read_chain(certificate: Path, key: Path) -> Sequence[x509.Certificate]:
    """Read the user's certificate and its issuers; check that the key matches and that the dates are valid."""
    try:
        chain = x509.load_pem_x509_certificates(_read(certificate))
    except ValueError as error:
        raise StartupError(
            f"{certificate} holds no certificate: give --tls-certificate one in PEM (-----BEGIN CERTIFICATE-----), "
            "followed by those of its issuers."
        ) from error
    try:
        private = load_pem_private_key(_read(key), None)
    except TypeError as error:
        raise StartupError(
            f"The key {key} has a password, which the emulator cannot ask for: give --tls-key one without a "
            "password, as `openssl pkey -in KEY -out NEW` writes it."
        ) from error
    except ValueError as error:
        raise StartupError(
            f"{key} holds no private key: give --tls-key one in PEM (-----BEGIN PRIVATE KEY-----)."
        ) from error
    if private.public_key() != chain[0].public_key():
        others = any(private.public_key() == each.public_key() for each in chain)
        remedy = (
            "its own certificate has to be the first in the file" if others else "give the two that were made together"
        )
        raise StartupError(f"The key {key} does not belong to the certificate {certificate}: {remedy}.")
    now = datetime.now(UTC)
    for each in chain:
        whose = f"The certificate of {each.subject.rfc4514_string() or 'nobody'} in {certificate}"
        if each.not_valid_after_utc < now:
            raise StartupError(
                f"{whose} expired on {each.not_valid_after_utc:%Y-%m-%d %H:%M} UTC, and this machine's clock shows "
                f"{now:%Y-%m-%d %H:%M}: renew it."
            )
        if each.not_valid_before_utc > now:
            raise StartupError(
                f"{whose} is not valid before {each.not_valid_before_utc:%Y-%m-%d %H:%M} UTC, and this machine's "
                f"clock shows {now:%Y-%m-%d %H:%M}: set the clock, or wait."
            )
        if each.not_valid_after_utc < now + _SOON:
            logger.warning(
                "%s expires on %s: renew it, and restart the emulator.", whose, f"{each.not_valid_after_utc:%Y-%m-%d}"
            )
    return chain


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StartupError(f"{path} cannot be read: {error.strerror}.") from error


def find_fault(
    context: ssl.SSLContext, trusted: Iterable[x509.Certificate], name: str
) -> ssl.SSLCertVerificationError | None:
    """Simulate a handshake in memory with a client that trusts only these; return the fault, None if there is none."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(cadata="".join(each.public_bytes(Encoding.PEM).decode() for each in trusted))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname=name)
    answering = context.wrap_bio(to_server, to_client, server_side=True)
    while True:
        for side in (asking, answering):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return error
            if side is asking:
                return None


def _describe_fault(
    fault: ssl.SSLCertVerificationError, certificate: Path, chain: Sequence[x509.Certificate], asked: str
) -> str:
    if fault.verify_code in _MISMATCHES:
        names = ", ".join(_list_names(chain[0])) or "no address"
        return (
            f"The certificate {certificate} is for {names}, and not for {asked}: "
            "give --advertise an address that it is for, or --tls-certificate one for this address."
        )
    if fault.verify_code in _NO_ISSUER:
        return (
            f"The issuer of the last certificate in {certificate}, {chain[-1].issuer.rfc4514_string()}, is not there: "
            "append the certificates of its issuers, up to the root that clients are to trust."
        )
    return f"Clients would not take the certificate {certificate}: {fault.verify_message}."


def _list_names(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]


def _keep_authority(path: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Read the authority; generate it if it is missing or about to expire."""
    if path.exists():
        content = _read(path)
        try:
            certificate, key = x509.load_pem_x509_certificate(content), load_pem_private_key(content, None)
        except (ValueError, TypeError) as error:
            raise StartupError(
                f"{path} cannot be read ({error}): remove it. Clients that trust it then need the new one."
            ) from error
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        if certificate.not_valid_after_utc > datetime.now(UTC) + _VALID:
            return certificate, key
    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _begin(key, f"smdebug-emulator {os.urandom(4).hex()}", None, datetime.now(UTC), _AUTHORITY_VALID)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    _write_private(path, _encode_key(key) + certificate.public_bytes(Encoding.PEM))
    return certificate, key


def _begin(
    key: ec.EllipticCurvePrivateKey, name: str, issuer: x509.Name | None, now: datetime, valid: timedelta
) -> x509.CertificateBuilder:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLY)
        .not_valid_after(now - _EARLY + valid)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _encode_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _build_context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(certificate, key)
    return context


def _write_private(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file atomically; only its owner can read it at any time."""
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_suffix(".partial")
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    unfinished.replace(path)
