"""DeletePolicy of an attached policy, refused as AWS does.

moto deletes such a policy.
"""

import functools
from contextlib import AbstractContextManager
from typing import Any

from emulator.moto_services.replacements import replaced


def refusing_attached_policies() -> AbstractContextManager[None]:
    """Make moto's DeletePolicy reject an attached policy.

    Deleting a CloudFormation stack still works, because it detaches the stack's policies first.
    """
    from moto.iam.exceptions import DeleteConflictException
    from moto.iam.responses import IamResponse

    delete = IamResponse.delete_policy

    @functools.wraps(delete)
    def delete_policy(response: Any) -> Any:
        arn = response._get_param("PolicyArn")  # noqa: SLF001 -- moto's only reader of it
        if response.backend.get_policy(arn).attachment_count:
            raise DeleteConflictException("Cannot delete a policy attached to entities.")
        return delete(response)

    return replaced(IamResponse, delete_policy=delete_policy)
