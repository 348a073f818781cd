"""What moto answers for SageMaker without doing it: kept, described and listed, and nothing happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# By operation, what AWS would do.
STORED_ONLY: Mapping[str, str] = {
    "CreateAutoMLJobV2": "train candidates",
    "CreateCluster": "start a HyperPod cluster",
    "CreateCompilationJob": "compile a model",
    "CreateDataQualityJobDefinition": "monitor an endpoint",
    "CreateDomain": "set up Studio",
    "CreateEndpoint": "serve a model",
    "CreateFeatureGroup": "store features",
    "CreateModelBiasJobDefinition": "monitor an endpoint",
    "CreateModelExplainabilityJobDefinition": "monitor an endpoint",
    "CreateModelQualityJobDefinition": "monitor an endpoint",
    "CreateNotebookInstance": "start a notebook server",
    "CreateTransformJob": "transform data in batches",
    "StartNotebookInstance": "start a notebook server",
    "UpdateEndpointWeightsAndCapacities": "move traffic between variants",
}
