"""Store of moto's backends and replacements, from start to close."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING

import moto
from moto.core.model_instances import reset_model_data

from emulator.moto_services.replacements import check_moto, replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from emulator.moto_services.s3.journal import ContentsFollower
    from emulator.state.disk import DiskBudget


class MotoStore:
    """moto in this process. Its backends are module globals, so there is only one store at a time."""

    def __init__(
        self,
        folder: Path,
        disk: DiskBudget | None = None,
        follower: ContentsFollower | None = None,
        *,
        tracks_instances: bool = False,
    ) -> None:
        """Check moto's version, and replace its state in memory by that of the folder.

        Args:
            folder: where the state is stored.
            disk: limits the space for S3.
            follower: keeps a copy of everything elsewhere; None for none.
            tracks_instances: whether moto lists every object that it ever created, for its dashboard.

        Raises:
            StartupError: the installed moto does not fit, or the folder cannot be used.
        """
        check_moto(moto.__version__)
        # Imported here: with an incompatible moto, the imports could fail.
        from emulator.moto_services.cloudwatch.metric_filters import count_log_events
        from emulator.moto_services.cloudwatch.metric_periods import aggregate_like_cloudwatch
        from emulator.moto_services.cloudwatch.metrics import list_metrics_once
        from emulator.moto_services.cloudwatch.sagemaker_metrics import count_missing_steps
        from emulator.moto_services.durable import DurableBackends
        from emulator.moto_services.functions.policies import keeping_policies_apart
        from emulator.moto_services.iam.aws_managed_policies import creating_aws_managed_policies
        from emulator.moto_services.iam.policy_simulation import simulating_policies
        from emulator.moto_services.iam.principals import KNOWN_SESSIONS
        from emulator.moto_services.iam.refusals import refusing_like_iam
        from emulator.moto_services.keys import finding_keys_by_arn
        from emulator.moto_services.queues import keeping_queue_attributes
        from emulator.moto_services.s3.backend import open_s3
        from emulator.moto_services.sagemaker.descriptions import describing_like_sagemaker
        from emulator.moto_services.sagemaker.experiments import keeping_experiments
        from emulator.moto_services.sagemaker.lineage import tracking_lineage
        from emulator.moto_services.sagemaker.model_registry import keeping_model_packages
        from emulator.moto_services.sagemaker.pipeline_versions import keeping_versions
        from emulator.moto_services.sagemaker.pipelines import keeping_definitions
        from emulator.moto_services.sagemaker.stored_kinds import storing_more_kinds
        from emulator.moto_services.sagemaker.tags import keeping_tags

        with ExitStack() as closers:
            if not tracks_instances:
                closers.enter_context(untracked())
            self._s3 = open_s3(folder / "s3", disk, follower)
            closers.callback(self._s3.close)
            self._backends = DurableBackends(
                folder / "moto",
                {
                    "awslambda": [keeping_policies_apart],
                    "cloudwatch": [list_metrics_once, aggregate_like_cloudwatch],
                    "iam": [refusing_like_iam, creating_aws_managed_policies, simulating_policies],
                    "kms": [finding_keys_by_arn],
                    "logs": [count_log_events],
                    "sagemaker": [
                        describing_like_sagemaker,
                        keeping_experiments,
                        keeping_definitions,
                        keeping_versions,
                        keeping_model_packages,
                        storing_more_kinds,
                        tracking_lineage,
                        keeping_tags,
                    ],
                    "sagemakermetrics": [count_missing_steps],
                    "sqs": [keeping_queue_attributes],
                    "sts": [KNOWN_SESSIONS.known_to_sts],
                },
                followed=follower is not None,
            )
            closers.callback(self._backends.close)
            self._closers = closers.pop_all()

    @property
    def is_empty(self) -> bool:
        """Whether all services except S3 are empty."""
        return self._backends.is_empty

    def count_s3(self) -> dict[str, int]:
        """Count S3's buckets and objects."""
        journal = self._s3.journal
        return {
            "buckets": sum(1 for _ in journal.read_buckets()),
            "objects": sum(1 for _ in journal.read_objects()),
        }

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Prevent changes to the files inside the ``with`` block."""
        with self._s3.at_rest(), self._backends.at_rest():
            yield

    def replacing_in(
        self, service: str, replace: Callable[[], AbstractContextManager[None]]
    ) -> AbstractContextManager[None]:
        """Replace more of a service inside the ``with`` block; see ``DurableBackends.replacing_in``."""
        return self._backends.replacing_in(service, replace)

    def reset(self) -> None:
        """Remove everything, also from the folder. No request may be running."""
        self._s3.reset()
        self._backends.reset()
        reset_model_data()  # what moto's dashboard lists

    def close(self) -> None:
        """Detach from the folder, which keeps its content. Afterwards, moto is empty, in memory only and unmodified."""
        self._closers.close()


def untracked() -> AbstractContextManager[None]:
    """Let Python free objects of moto that are not used any more, such as every message that was ever sent.

    moto lists every object that it ever made, for its own dashboard, which is empty inside the block.
    """
    from moto.core.common_models import BaseModel

    return replaced(BaseModel, __new__=staticmethod(lambda cls, *_, **__: object.__new__(cls)))
