"""SageMaker Metrics: BatchPutMetrics, as the SDK's ``Run.log_metric`` sends it."""

import functools
from contextlib import AbstractContextManager
from typing import Any

from emulator.moto_services.replacements import replaced


def count_missing_steps() -> AbstractContextManager[None]:
    """Make BatchPutMetrics accept values without a Step. The step is the last one plus 1.

    moto responds to such values with status 500.
    """
    from moto.sagemakermetrics.models import SageMakerMetricsBackend

    put = SageMakerMetricsBackend.batch_put_metrics

    @functools.wraps(put)
    def batch_put_metrics(backend: Any, trial_component_name: str, metric_data: list[dict[str, Any]]) -> Any:
        component = backend.sagemaker_backend.trial_components.get(trial_component_name)
        if component is None:
            return put(backend, trial_component_name, metric_data)
        for datum in metric_data:  # one at a time, because the next step depends on the existing steps
            known: dict[int, Any] = component.metrics.get(datum["MetricName"], {}).get("Values", {})
            put(backend, trial_component_name, [{"Step": max(known, default=-1) + 1, **datum}])
        return {"Errors": []}

    return replaced(SageMakerMetricsBackend, batch_put_metrics=batch_put_metrics)
