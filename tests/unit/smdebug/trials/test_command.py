import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from smdebug.mode_keys import ModeKeys
from smdebug.trials.__main__ import main
from tests.unit.smdebug.object_storage import Storage
from tests.unit.smdebug.runs import RunMaker
from tests.unit.smdebug.trials.opened_run import open_run


def write(out_dir: str) -> RunMaker:
    run = RunMaker(out_dir)
    run.write_step(0, {"loss": 2.5, "fc.weight": np.array([1, np.nan, np.inf, 3], np.float32)}, ModeKeys.TRAIN, 0)
    run.write_step(1, {"loss": 1.5, "smdebug/reductions/mean/fc.weight": 2.0}, ModeKeys.EVAL, 0)
    run.end()
    return run


def test_prints_what_a_run_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(str(tmp_path))
    assert main([str(tmp_path)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for part in ("ended", "worker_0", "all 2 0 to 1", "TRAIN 1 0 to 0", "weights 1", "fc.weight 2 0 1", "mean, value"):
        assert part in printed


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(str(tmp_path))
    (tmp_path / "index/000000000/000000000009_worker_0.json").write_bytes(b"")
    assert main([str(tmp_path), "--json"]) == 0
    run = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert run["ended"]
    assert run["steps"]["EVAL"] == {"count": 1, "first": 0, "last": 0}
    assert run["steps"]["GLOBAL"]["count"] == 3
    loss = next(tensor for tensor in run["tensors"] if tensor["name"] == "loss")
    assert (loss["steps"], loss["first"], loss["last"], loss["saved"]) == (2, 0, 1, ["value"])
    sizes = [path.stat().st_size for path in tmp_path.glob("events/*/*")]
    assert run["bytes"] == sum(sizes)
    assert run["collections"]["weights"] == 1
    assert "step 9" in run["damaged"][0]


def test_values_of_a_tensor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(str(tmp_path))
    assert main([str(tmp_path), "--tensor", "fc.weight", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert first == {
        "step": 0,
        "worker": "worker_0",
        "dtype": "float32",
        "shape": [4],
        "min": 1.0,
        "max": 3.0,
        "mean": 2.0,
        "std": 1.0,
        "nan": 1,
        "inf": 1,
    }
    assert second["reductions"] == {"mean": 2.0}
    assert main([str(tmp_path), "--tensor", "loss", "--mode", "EVAL"]) == 0
    kind, header, line = capsys.readouterr().out.splitlines()
    assert (kind, len(header)) == ("float64, shape (1,)", 79)
    assert line.split() == ["0", "worker_0", "1.5", "1.5", "1.5", "0", "0", "0"]


def test_complex_reductions_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = RunMaker(tmp_path)
    run.write_step(0, {"smdebug/reductions/mean/wave": np.array(1 + 2j), "smdebug/reductions/norm/wave": 3.0})
    run.end()
    assert main([str(tmp_path), "--tensor", "wave"]) == 0
    assert "norm 3" in capsys.readouterr().out
    tensors = open_run(tmp_path).step_tensors
    (saved,) = tensors.saved(["wave"], 0)
    assert (tensors.read_reduction(saved, "mean"), tensors.read_reduction(saved, "norm")) == (None, 3.0)


def test_a_tensor_without_a_value_in_a_mode_is_an_empty_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunMaker(str(tmp_path))
    run.write_step(0, {"loss": np.ones(1)}, ModeKeys.TRAIN, 0)
    run.write_step(1, {"score": np.ones(1)}, ModeKeys.EVAL, 0)
    run.end()
    assert main([str(tmp_path), "--tensor", "loss", "--mode", "EVAL"]) == 0
    assert capsys.readouterr().out.split() == ["step", "worker", "min", "max", "mean", "std", "nan", "inf"]


def test_the_run_in_one_mode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(str(tmp_path))
    assert main([str(tmp_path), "--mode", "eval", "--json"]) == 0
    run = json.loads(capsys.readouterr().out)
    loss, weight = run["tensors"]
    assert (loss["name"], loss["steps"], loss["first"], loss["last"]) == ("loss", 1, 0, 0)
    assert (weight["name"], weight["saved"]) == ("fc.weight", ["mean"])
    for tensor in ([], ["--tensor", "loss"]):
        assert main([str(tmp_path), "--mode", "PREDICT", *tensor]) == 1
        said = "no step of mode PREDICT was saved; the modes that have steps: TRAIN, EVAL.\n"
        assert capsys.readouterr().err == f"{tmp_path}: {said}"


def test_values_fit_80_columns_and_a_new_shape_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = RunMaker(str(tmp_path))
    for step, shape in enumerate([(2,), (2,), (3,)]):
        run.write_step(step, {"grown": np.full(shape, -1.23456789e-5)}, ModeKeys.TRAIN, step)
    run.end()
    assert main([str(tmp_path), "--tensor", "grown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("float64")] == ["float64, shape (2,)", "float64, shape (3,)"]
    assert lines.index("float64, shape (3,)") == 4
    assert max(map(len, lines)) == 79


def test_damaged_step_of_a_tensor_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(str(tmp_path))
    (tmp_path / "events/000000000001/000000000001_worker_0.tfevents").write_bytes(b"")
    assert main([str(tmp_path), "--tensor", "loss"]) == 0
    _, header, good, bad = capsys.readouterr().out.splitlines()
    assert "mean" in header
    assert "2.5" in good
    assert "Tensor loss is not available at step 1" in bad


def test_on_s3(storage: Storage, capsys: pytest.CaptureFixture[str]) -> None:
    write("s3://runs/job")
    assert main(["s3://runs/job"]) == 0
    assert "fc.weight" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["{0}/nothing"], "this is not a run: it contains no collections file"),
        (["{0}/nothing", "--job", "x"], "no tensors have been saved: smdebug-emulator describe x says how far the job"),
        (["{0}/run", "--tensor", "missing"], "There is no tensor missing"),
        (["{0}/half"], "1 of 2 workers"),
        (["{0}/broken"], "broken: "),
        (["s3://"], "s3://bucket/prefix"),
    ],
)
def test_errors_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    write(str(tmp_path / "run"))
    RunMaker(tmp_path / "half", workers=2)
    (tmp_path / "half/collections/000000000/worker_1_collections.json").unlink()
    RunMaker(tmp_path / "broken")
    (tmp_path / "broken/collections/000000000/worker_0_collections.json").write_bytes(b"{")
    assert main([part.format(tmp_path) for part in arguments]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert text in captured.err


@pytest.mark.parametrize("name", ["gradient/CrossEntropy", "loss", "crossentropyloss_output_0"])
def test_a_part_of_a_name_is_enough_for_a_hint(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = RunMaker(str(tmp_path))
    run.write_step(0, {"CrossEntropyLoss_output_0": 1.0, "gradient/Net_fc1.weight": 1.0, "Net_fc1.bias": 1.0})
    run.end()
    assert main([str(tmp_path), "--tensor", name]) == 1
    assert f"no tensor {name}. Did you mean CrossEntropyLoss_output_0? To list" in capsys.readouterr().err


def test_help_teaches() -> None:
    command = [sys.executable, "-m", "smdebug.trials", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for part in ("s3://bucket/prefix", "--tensor", "--json", "exit code"):
        assert part in done.stdout


def test_tensors_are_listed_in_the_order_of_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layers = ["net.0", "net.2", "net.10", "head"]
    run = RunMaker(str(tmp_path))
    run.write_step(0, dict.fromkeys([*layers, *(f"gradient/{name}" for name in reversed(layers))], 1.0))
    run.end()
    assert main([str(tmp_path), "--json"]) == 0
    names = [each["name"] for each in json.loads(capsys.readouterr().out)["tensors"]]
    assert names == [*layers, *(f"gradient/{name}" for name in layers)]


def test_layers_of_which_only_reductions_were_saved_keep_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunMaker(str(tmp_path))
    run.write_step(0, {"smdebug/reductions/mean/net.1": 1.0, "net.0": 2.0, "smdebug/reductions/mean/a": 1.0})
    run.end()
    assert main([str(tmp_path), "--json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)["tensors"]] == ["net.1", "net.0", "a"]


@pytest.mark.slow
def test_a_picture_of_a_tensor(tmp_path: Path) -> None:
    write(str(tmp_path / "run"))
    picture = tmp_path / "weight.png"
    assert main([str(tmp_path / "run"), "--tensor", "fc.weight", "--reduction", "mean", "--plot", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tensor", "gone"], "There is no tensor gone. To list the tensors: {} "),
        (["--tensor", "gone", "--plot", "x.png"], "There is no tensor gone. To list the tensors: {} "),
        (["--tensor", "los"], "There is no tensor los. Did you mean loss? To list the tensors: {} "),
        (
            ["--tensor", "fc.weigth", "--plot", "x.png"],
            "There is no tensor fc.weigth. Did you mean fc.weight? To list the tensors: {} ",
        ),
        (
            ["--tensor", "fc.weight", "--plot", "x.png", "--mode", "TRAIN"],
            "has 4 numbers a step: use a reduction",
        ),
        (
            ["--tensor", "fc.weight", "--plot", "x.png", "--mode", "EVAL"],
            "reductions of it were saved: plot one",
        ),
        (["--tensor", "[", "--plot", "x.png"], "'[' is not a valid regular expression"),
        (
            ["--tensor", "loss", "--plot", "x.pcx"],
            "x.pcx is not a picture: use a name that ends in .png, .svg or .pdf.",
        ),
        (["--tensor", "loss", "--plot", "gone/x.png"], "gone/x.png cannot be written or read: No such file"),
    ],
)
@pytest.mark.parametrize("job", [[], ["--job", "digits"]])
def test_errors_name_options_and_commands(
    arguments: list[str], said: str, job: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(str(tmp_path / "run"))
    assert main([str(tmp_path / "run"), *job, *arguments]) == 1
    printed = capsys.readouterr().err
    lister = "smdebug-emulator tensors" if job else "python -m smdebug.trials"
    assert said.format(lister) in printed
    assert printed.startswith("digits: " if job else str(tmp_path))
    assert printed.count("\n") == 1
    assert "trial." not in printed
    assert "(" not in printed
