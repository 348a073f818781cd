import pytest
from torch import nn

import smdebug.pytorch as smd
from smdebug.pytorch.collection import Collection, CollectionManager
from smdebug.pytorch.hook import Hook
from tests.unit.smdebug.pytorch.small_training import MakeHook, Training
from tests.unit.smdebug.written_run import WrittenRun


def test_a_manager_begins_with_the_collections_of_the_hook() -> None:
    manager = CollectionManager()
    assert set(manager.collections) == {"all", "default", "weights", "biases", "gradients", "losses"}
    assert {name: tuple(found.include_regex) for name, found in manager.collections.items()} == Hook.default_collections
    assert isinstance(manager.get("weights"), Collection)
    assert CollectionManager(create_default=False).collections == {}


def test_a_loaded_manager_holds_what_its_text_says() -> None:
    assert CollectionManager.load_from_string('{"collections": {}, "_meta": {"num_workers": 1}}').collections == {}


def test_a_collection_shows_its_modules() -> None:
    layer, collection = nn.Linear(1, 1), Collection("mine")
    collection.add_module_tensors(layer)
    assert collection.modules == {layer: (False, True)}
    collection.add_module_tensors(layer, inputs=True)
    assert collection.modules == {layer: (True, True)}


@pytest.mark.parametrize("interval", [1, 3])
def test_a_collection_that_is_included_later_is_saved_from_then_on(
    interval: int, make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    hook = make_hook(include_collections=["weights"], save_config=smd.SaveConfig(save_interval=interval))
    hook.register_module(training.model)
    training.step(2)
    hook.include_collections.append("gradients")
    training.step(2)
    hook.close()
    saved = {step: any(name.startswith("gradient/") for name in run.values(step)) for step in run.steps}
    assert saved == {step: step >= 2 for step in range(0, 4, interval)}
