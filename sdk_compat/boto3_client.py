"""boto3 session for the emulator, used by this project's own code."""

import re
from typing import Any, cast
from urllib.parse import urlsplit

import boto3
from botocore.loaders import Loader, create_loader
from botocore.session import Session as BotocoreSession

from sdk_compat.aws_variables import CREDENTIALS

# AWS_PROFILE is ignored: it may name a missing profile, and its credentials and region are not used.
_NO_PROFILE: Any = {"profile": (None, None, None, None)}
# By the folders in AWS_DATA_PATH. A loader keeps the models that it has read, and the list of services, for which it
# looks into hundreds of folders.
_loaders: dict[str | None, Loader] = {}
_AWS_HOST = re.compile(r"(^|\.)amazonaws\.com(\.cn)?$")


class EmulatorSession(boto3.Session):
    """A boto3 session whose clients all use the emulator, whatever the environment variables are."""

    def __init__(self, endpoint_url: str, region: str = "us-east-1", ca_bundle: str | None = None) -> None:
        """Create it.

        Args:
            endpoint_url: the emulator's URL.
            region: of clients that name none.
            ca_bundle: the file of the certificates that are trusted; None for that of the environment.
        """
        session = BotocoreSession(session_vars=_NO_PROFILE)
        if ca_bundle is not None:
            session.set_config_variable("ca_bundle", ca_bundle)
        folders: str | None = session.get_config_variable("data_path")
        loader = _loaders.setdefault(folders, create_loader(folders))
        session.register_component("data_loader", loader)
        super().__init__(
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            region_name=region,
            botocore_session=session,
        )
        # Each session of boto3 has added its own folder of models.
        loader.search_paths[:] = dict.fromkeys(loader.search_paths)
        self._endpoint_url = endpoint_url

    def client(self, *args: Any, **options: Any) -> Any:
        """Create a client. An explicit endpoint of AWS is replaced; any other explicit endpoint is kept."""
        return cast("Any", super().client)(*args, **self._redirect(options))

    def resource(self, *args: Any, **options: Any) -> Any:
        """Create a resource. An explicit endpoint of AWS is replaced; any other explicit endpoint is kept."""
        return cast("Any", super().resource)(*args, **self._redirect(options))

    def _redirect(self, options: dict[str, Any]) -> dict[str, Any]:
        named = options.get("endpoint_url")
        if named and not _AWS_HOST.search(urlsplit(named).hostname or ""):
            return options
        return {**options, "endpoint_url": self._endpoint_url}
