"""Selection of the container back end, with the reason."""

from dataclasses import replace

from container_runtime.back_ends import ChosenRuntime, RuntimeOptions, list_back_ends, load_back_end
from container_runtime.runtime import EngineRefusedError, EngineUnavailableError, ImageNotFoundError

AUTO = "auto"
"""The choice that stands for Docker if an engine answers and has this project's images, else for local processes."""


def list_choices() -> tuple[str, ...]:
    """Return what ``--runtime`` takes."""
    return (AUTO, *list_back_ends())


def select_runtime(choice: str, options: RuntimeOptions) -> ChosenRuntime:
    """Open the requested back end.

    Raises:
        EngineUnavailableError: ``docker`` or ``swarm`` was requested, and no engine or no manager answers.
        ImageNotFoundError: ``docker`` was requested and this project's images are not built, or ``swarm`` was
            requested and the image of the rules is not built.
        ContainerRuntimeError: there is no such back end, or it cannot be opened, for example because it cannot use the
            state folder.
    """
    if choice != AUTO:
        return load_back_end(choice).open(options)
    try:
        return load_back_end("docker").open(replace(options, why="an engine answers and has the images"))
    except EngineRefusedError as error:
        why = f"Containers run as local processes, not on Docker. {error}"
    except EngineUnavailableError:
        why = "No Docker engine answers: containers run as local processes."
    except ImageNotFoundError:
        why = (
            "A Docker engine answers, but images are missing (smdebug-emulator images build): containers run as local "
            "processes."
        )
    return load_back_end("process").open(replace(options, why=why))
