"""Another S3 for state replication: moto_server in its own process."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from container_runtime.process.loopback_network import draw_port
from tests.boto3_client import make_client
from tests.contract.like_moto_server.servers import run_moto_server

BUCKET = "smdebug-emulator"
"""The bucket that is taken unless another is named."""


class OtherS3:
    """The server, with that bucket, behind a port of its own that can be closed for a while.

    Attributes:
        endpoint_url: where it is reached.
        client: a client of it, by another way.
    """

    def __init__(self, server_url: str) -> None:
        self._server = ("127.0.0.1", int(server_url.rpartition(":")[2]))
        self._guard = threading.Lock()
        self._away = False
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = self._listen(draw_port())  # which nobody else is given while it is away
        self.endpoint_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.client: Any = make_client(server_url, "s3")
        self.client.create_bucket(Bucket=BUCKET)

    def list_keys(self, prefix: str = "") -> list[str]:
        """List what is in the bucket."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [each["Key"] for page in pages for each in page.get("Contents", ())]

    def go_away(self) -> None:
        """Answer nobody any more."""
        with self._guard:
            self._away = True
            self._listener.shutdown(socket.SHUT_RDWR)
            for each in self._open:
                with suppress(OSError):  # the other end was first
                    each.shutdown(socket.SHUT_RDWR)
        while (thread := self._pop_thread()) is not None:
            thread.join()

    def come_back(self) -> None:
        """Answer again."""
        self._away = False
        self._listener = self._listen(int(self.endpoint_url.rpartition(":")[2]))

    def _listen(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port))
        self._begin(self._accept, listener)
        return listener

    def _begin(self, target: Callable[..., None], *args: socket.socket) -> threading.Thread:
        thread = threading.Thread(target=target, args=args, daemon=True)
        with self._guard:
            self._threads.append(thread)
            thread.start()
        return thread

    def _pop_thread(self) -> threading.Thread | None:
        with self._guard:
            return self._threads.pop() if self._threads else None

    def _accept(self, listener: socket.socket) -> None:
        with listener, suppress(OSError):
            while True:
                client, _ = listener.accept()
                self._begin(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._server) as server:
            with self._guard:
                if self._away:
                    return
                self._open |= {client, server}
            back = self._begin(self._copy, server, client)
            self._copy(client, server)
            back.join()
            with self._guard:
                self._open -= {client, server}

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def run_other_s3() -> Iterator[OtherS3]:
    """Start it."""
    with run_moto_server() as server_url:
        other = OtherS3(server_url)
        try:
            yield other
        finally:
            other.go_away()


VARIABLES = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
"""What boto3 finds to sign with where an emulator keeps a copy there."""
