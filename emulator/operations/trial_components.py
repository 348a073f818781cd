"""Operations on trial components, those of jobs included."""

from emulator.operations.context import Context, Request, Response


def describe_trial_component(request: Request, context: Context) -> Response | None:  # noqa: ARG001 - moto reads it
    """Bring the components of jobs up to date; moto describes the component."""
    context.jobs.experiments.refresh(context.region)
    return None


def list_trial_components(request: Request, context: Context) -> Response | None:  # noqa: ARG001 - moto reads it
    """Bring the components of jobs up to date; moto lists them."""
    context.jobs.experiments.refresh(context.region)
    return None
