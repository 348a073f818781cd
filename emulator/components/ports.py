"""Components of a process: state folder, replica, ports, faults, announcement."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from emulator.components.component import Component
from emulator.exceptions import StartupError
from emulator.faults import FAULTS, parse_fault
from emulator.gateway.listener import Listener
from emulator.security.keys import load_keys
from emulator.state.archive import apply_staged
from emulator.state.folder import StateFolder
from emulator.state.kept_states import KeptStates

if TYPE_CHECKING:
    from emulator.gateway.addresses import Addresses
    from emulator.security.certificates import Certificates
    from emulator.security.keys import Keys
    from emulator.settings import Settings
    from emulator.state.disk import DiskBudget
    from emulator.state.replica.bucket import Bucket
    from emulator.state.replica.replica import Replica

logger = logging.getLogger(__name__)

LOST_EXIT_CODE = 75
"""Exit code of an emulator whose state another emulator has taken over (EX_TEMPFAIL)."""


class Folder(Component):
    """The lock on the state folder, and the import of a staged archive."""

    folder: StateFolder

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._state_dir = settings.state_dir

    def start(self) -> None:
        """Lock the folder, and import the archive if there is one."""
        self.folder = StateFolder(self._state_dir)
        self.closers.callback(self.folder.close)
        apply_staged(self._state_dir)


class ReplicaComponent(Component):
    """The replica of the state in another S3, if the settings name one.

    Attributes:
        replica: None if there is none.
    """

    replica: Replica | None = None

    def __init__(self, settings: Settings, bucket: Bucket | None, folder: Folder) -> None:
        super().__init__(folder)
        self._state_dir = settings.state_dir
        self._bucket = bucket

    def start(self) -> None:
        """Open the replica, and restore the state from it if the state folder is empty."""
        if self._bucket is None:
            return
        # Imported here: most emulators have no replica.
        from emulator.state.replica.opening import open_replica

        self.replica = open_replica(self._bucket, self._state_dir, end_at_once)
        self.closers.callback(self.replica.close)

    def end_if_cut_off(self) -> None:
        """From now on, end this process at once in place of a wait for the lease: at a stop, nobody waits for it."""
        if self.replica is not None:
            self.replica.fence.end_instead(end_cut_off)
            self.replica.fence.wait()

    @property
    def restored(self) -> bool:
        """Whether the state was restored from the replica."""
        return self.replica is not None and self.replica.restored


class Ports(Component):
    """The listening ports, which accept connections but do not answer yet, with their certificates and keys.

    Attributes:
        settings: the given settings, with the real port, the keys and the trusted certificates.
        listeners: one for each address; the first is that of this machine.
        certificates: None without TLS.
        keys: the emulator's own keys.
        disk: the disk budget of the state folder.
        kept_states: the states that resets removed within the last day.
    """

    settings: Settings
    listeners: list[Listener]
    certificates: Certificates | None
    keys: Keys
    disk: DiskBudget
    kept_states: KeptStates

    def __init__(self, settings: Settings, addresses: Addresses, replica: ReplicaComponent) -> None:
        super().__init__(replica)
        self.addresses = addresses
        self._given = settings

    def start(self) -> None:
        """Open the ports."""
        settings = self._given
        self.disk = settings.disk
        self.kept_states = KeptStates(settings.state_dir, self.disk)
        self.closers.callback(self.kept_states.close)
        self.certificates = open_certificates(settings, self.addresses)
        self.listeners = []
        for address in self.addresses.listening:
            listener = self.listen(address, settings.port)
            settings = replace(settings, port=listener.port)
        self.keys = load_keys(settings.state_dir)
        self.settings = replace(
            settings,
            keys=self.keys,
            # Clients on other machines have to authenticate.
            require_signature=settings.require_signature or self.addresses.advertised is not None,
            ca_bundle=None if self.certificates is None else self.certificates.bundle,
        )

    def listen(self, address: str, port: int) -> Listener:
        """Open a port on one more address.

        Raises:
            StartupError: the address cannot be bound; see ``Listener``.
        """
        listener = Listener(address, port, self.disk, self.certificates)
        self.closers.callback(listener.close)
        self.listeners.append(listener)
        return listener

    def close_listeners(self) -> None:
        """Finish the requests in progress, and accept no more. Idempotent."""
        for listener in self.listeners:
            listener.close()


class Faults(Component):
    """The faults in the settings."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._faults = settings.faults

    def start(self) -> None:
        """Activate the faults."""
        FAULTS.set(dict(map(parse_fault, self._faults)))
        self.closers.callback(FAULTS.set, {})


class Announcement(Component):
    """The record in the state folder by which other processes find this emulator."""

    def __init__(self, folder: Folder, ports: Ports, *services: Component) -> None:
        super().__init__(folder, ports, *services)
        self._folder = folder
        self._ports = ports

    def start(self) -> None:
        """Write the record."""
        settings = self._ports.settings
        self._folder.folder.announce(
            settings.endpoint_url,
            settings.region,
            settings.account_id,
            settings.keys if settings.require_signature else None,
            settings.ca_bundle,
        )


def end_at_once(reason: str) -> None:
    """End this process as SIGKILL would: another emulator now drives its jobs, and has their containers."""
    logger.critical(
        "%s: this emulator no longer owns its state, and ends at once. Its jobs are that one's now; started again, "
        "it takes the state from there.",
        reason,
    )
    os._exit(LOST_EXIT_CODE)


def end_cut_off() -> None:
    """End this process as SIGKILL would: another emulator may drive its jobs, and have their containers."""
    logger.critical(
        "The other S3 has not been reached for longer than the lease lasts: this emulator ends at once and stops no "
        "job, since another one may have them. Started again, it goes on with them if no other has."
    )
    os._exit(LOST_EXIT_CODE)


def open_certificates(settings: Settings, addresses: Addresses) -> Certificates | None:
    """Read or generate the certificates; None if all clients are on this machine and TLS was not requested.

    Raises:
        StartupError: a certificate file is invalid.
    """
    if (settings.tls_certificate is None) != (settings.tls_key is None):
        lacking, given = (
            ("--tls-key", "--tls-certificate") if settings.tls_key is None else ("--tls-certificate", "--tls-key")
        )
        raise StartupError(f"{given} also needs {lacking}: give both. If one file contains both, give it twice.")
    if addresses.advertised is None and not settings.tls and settings.tls_certificate is None:
        return None
    # Imported here: most emulators need none of it.
    from emulator.security.certificates import Certificates

    return Certificates(settings.state_dir, addresses.advertised, settings.tls_certificate, settings.tls_key)
