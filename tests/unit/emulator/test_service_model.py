import pytest
from botocore.loaders import Loader

from emulator.service_model import load_service_model, load_signing_names


def test_the_model_is_what_clients_of_the_same_botocore_load(monkeypatch: pytest.MonkeyPatch) -> None:
    load_service_model.cache_clear()
    listed: list[str] = []
    monkeypatch.setattr(Loader, "list_available_services", lambda _self, kind: listed.append(kind))

    model = load_service_model()

    monkeypatch.undo()
    assert not listed
    assert model.metadata["endpointPrefix"] == "api.sagemaker"
    found = vars(model)["_service_description"]
    assert found == Loader().load_service_model("sagemaker", "service-2")


def test_signing_names_are_those_of_the_models() -> None:
    names = load_signing_names()
    loader = Loader()
    assert names.keys() == set(loader.list_available_services("service-2"))
    for service in ("s3", "sagemaker-runtime", "cloudwatch", "cloudfront", "ses", "events"):
        metadata = loader.load_service_model(service, "service-2")["metadata"]
        assert names[service] == metadata.get("signingName", metadata["endpointPrefix"])
