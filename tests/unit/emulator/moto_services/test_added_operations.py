"""Operations of SageMaker that moto lacks, known before the first request."""

from pathlib import Path

from emulator.moto_services.store import MotoStore
from emulator.moto_services.wsgi import has_sagemaker_operation


def test_they_are_known_before_anything_else_has_used_sagemaker(tmp_path: Path) -> None:
    store = MotoStore(tmp_path)
    try:
        for name in ("delete_model_package_group", "describe_code_repository", "delete_feature_group"):
            assert has_sagemaker_operation(name)
        assert not has_sagemaker_operation("create_app")
    finally:
        store.close()
    assert not has_sagemaker_operation("describe_code_repository")
