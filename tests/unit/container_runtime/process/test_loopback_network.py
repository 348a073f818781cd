"""Tests of the files of local processes' networks."""

from pathlib import Path

import pytest

from container_runtime.process.loopback_network import LoopbackNetworks


def test_a_network_whose_file_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    networks = LoopbackNetworks(tmp_path)

    def fill_half(path: Path, text: str, **_options: str) -> int:
        path.write_bytes(text[: len(text) // 2].encode())
        raise OSError("No space left on device")

    with monkeypatch.context() as full_disk:
        full_disk.setattr(Path, "write_text", fill_half)
        with pytest.raises(OSError, match="No space left"):
            networks.create("job", ["algo-1"], {"job": "1"})
    assert not networks.exists("job")
    assert networks.find({}) == []
    networks.create("job", ["algo-1"], {"job": "1"})
    assert [each.name for each in networks.find({"job": "1"})] == ["job"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.json", "lock"]


def test_a_network_is_made_and_found_while_another_is_removed(tmp_path: Path) -> None:
    networks = LoopbackNetworks(tmp_path)
    (tmp_path / "gone.json").symlink_to("nowhere")  # listed, and not there when it is read
    networks.create("job", ["algo-1"], {"job": "1"})
    assert [each.name for each in networks.find({})] == ["job"]
