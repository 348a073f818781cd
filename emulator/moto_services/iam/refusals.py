"""DeletePolicy and GetRole: what moto does not refuse, or refuses without a hint."""

import functools
from contextlib import AbstractContextManager
from typing import Any

from emulator.moto_services.replacements import replaced


def refusing_like_iam() -> AbstractContextManager[None]:
    """Make DeletePolicy refuse an attached policy, and GetRole explain how to create an absent role.

    Deleting a CloudFormation stack still works, because it detaches the stack's policies first. The SageMaker SDKs call
    GetRole for the ARN of a role that a script specifies by name.
    """
    from moto.iam.exceptions import DeleteConflictException, NotFoundException
    from moto.iam.responses import IamResponse

    delete, get = IamResponse.delete_policy, IamResponse.get_role

    @functools.wraps(delete)
    def delete_policy(response: Any) -> Any:
        arn = response._get_param("PolicyArn")  # noqa: SLF001 -- moto's only reader of it
        if response.backend.get_policy(arn).attachment_count:
            raise DeleteConflictException("Cannot delete a policy attached to entities.")
        return delete(response)

    @functools.wraps(get)
    def get_role(response: Any) -> Any:
        try:
            return get(response)
        except NotFoundException as error:
            name = response._get_param("RoleName")  # noqa: SLF001 -- moto's only reader of it
            raise NotFoundException(
                f"The role with name {name} cannot be found. Create it: aws iam create-role, or "
                f"smdebug-emulator env --role {name}, which also signs requests as it."
            ) from error

    return replaced(IamResponse, delete_policy=delete_policy, get_role=get_role)
