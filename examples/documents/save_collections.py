"""Saved collections of three TensorFlow jobs: built-in, modified and custom."""

from pathlib import Path

import sagemaker
from sagemaker.debugger import CollectionConfig, DebuggerHookConfig
from sagemaker.tensorflow import TensorFlow

from smdebug.trials import create_trial

COLLECTIONS = {
    "built-in": [CollectionConfig(name=name) for name in ("weights", "gradients", "losses", "biases")],
    "modified": [CollectionConfig(name="losses", parameters={"train.save_interval": "50", "eval.save_interval": "10"})],
    "custom": [
        CollectionConfig(
            name="custom_activations_collection",
            parameters={
                "include_regex": "relu|tanh",
                "reductions": "mean,variance,max,abs_mean,abs_variance,abs_max",
            },
        )
    ],
}


def main() -> None:
    session = sagemaker.Session()
    estimators = {}
    for kind, configs in COLLECTIONS.items():
        estimators[kind] = TensorFlow(
            entry_point=str(Path(__file__).parent / "source" / "keras_script.py"),
            role=sagemaker.get_execution_role(),
            base_job_name=f"{kind}-collections",
            instance_count=1,
            instance_type="ml.m4.xlarge",
            framework_version="2.8.0",
            py_version="py39",
            debugger_hook_config=DebuggerHookConfig(
                s3_output_path=f"s3://{session.default_bucket()}/debugger-{kind}-collections-hook",
                collection_configs=configs,
            ),
        )
        estimators[kind].fit(wait=False)
    for kind, estimator in estimators.items():
        estimator.latest_training_job.wait(logs="None")
        trial = create_trial(estimator.latest_job_debugger_artifacts_path())
        for config in COLLECTIONS[kind]:
            names = trial.tensor_names(collection=config.name)
            print(f"{kind} {config.name}: {len(names)} tensors at steps {trial.tensor(names[0]).steps()}")


if __name__ == "__main__":
    main()
