"""GetRole of an absent role: an error that explains how to create it."""

import functools
from contextlib import AbstractContextManager
from typing import Any

from emulator.moto_services.replacements import replaced


def explaining_missing_roles() -> AbstractContextManager[None]:
    """Make moto's GetRole explain how to create an absent role.

    The SageMaker SDKs call GetRole for the ARN of a role that a script specifies by name.
    """
    from moto.iam.exceptions import NotFoundException
    from moto.iam.responses import IamResponse

    answer = IamResponse.get_role

    @functools.wraps(answer)
    def get_role(response: Any) -> Any:
        try:
            return answer(response)
        except NotFoundException as error:
            name = response._get_param("RoleName")  # noqa: SLF001 -- moto's only reader of it
            raise NotFoundException(
                f"The role with name {name} cannot be found. Create it: aws iam create-role, or "
                f"smdebug-emulator env --role {name}, which also signs requests as it."
            ) from error

    return replaced(IamResponse, get_role=get_role)
