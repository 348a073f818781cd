"""KMS keys that are disabled, enabled and deleted by ID, ARN and alias."""

from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError

from emulator.moto_services.keys import finding_keys_by_arn
from tests.integration.emulator.small_emulator import Emulator


@pytest.fixture(autouse=True)
def _finding() -> Iterator[None]:
    with finding_keys_by_arn():
        yield


@pytest.mark.parametrize("member", ["KeyId", "Arn"])
def test_a_key_is_disabled_enabled_and_deleted(emulator: Emulator, member: str) -> None:
    kms = emulator.client("kms")
    key = kms.create_key()["KeyMetadata"][member]

    def read_state() -> str:
        state: str = kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"]
        return state

    kms.disable_key(KeyId=key)
    assert read_state() == "Disabled"
    kms.enable_key(KeyId=key)
    assert read_state() == "Enabled"
    kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)
    assert read_state() == "PendingDeletion"
    kms.cancel_key_deletion(KeyId=key)
    assert read_state() == "Disabled"


def test_a_key_that_does_not_exist_is_not_found(emulator: Emulator) -> None:
    arn = "arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000000"
    with pytest.raises(ClientError, match="NotFoundException"):
        emulator.client("kms").disable_key(KeyId=arn)
