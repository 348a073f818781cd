"""Job with TensorBoard output, shown by `smdebug-emulator tensorboard JOB`.

It shows scalars and histograms, also while the job trains.
"""

from pathlib import Path

import sagemaker
from sagemaker.debugger import CollectionConfig, DebuggerHookConfig, TensorBoardOutputConfig
from sagemaker.pytorch import PyTorch
from sagemaker.s3 import S3Downloader


def main() -> None:
    session = sagemaker.Session()
    estimator = PyTorch(
        entry_point=str(Path(__file__).parent / "source" / "torch_script.py"),
        role=sagemaker.get_execution_role(),
        instance_count=1,
        instance_type="ml.m5.large",
        framework_version="1.6.0",
        py_version="py36",
        debugger_hook_config=DebuggerHookConfig(
            collection_configs=[CollectionConfig(name, {"save_interval": "5"}) for name in ("weights", "losses")]
        ),
        tensorboard_output_config=TensorBoardOutputConfig(f"s3://{session.default_bucket()}/tensorboard"),
    )
    estimator.fit(logs="None")
    files = S3Downloader.list(estimator.latest_job_tensorboard_artifacts_path(), sagemaker_session=session)
    print(len([uri for uri in files if "tfevents" in uri]), "files for TensorBoard")


if __name__ == "__main__":
    main()
