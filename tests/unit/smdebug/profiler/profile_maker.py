"""Generated job profiles, in the files that the agent and the hook write."""

import json
import time
from pathlib import Path
from typing import Any

START = 1_700_000_040.0  # the first second of a minute


class ProfileMaker:
    """Writes below `profiler-output`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add_sample(self, seconds: float, node: str = "algo-1", **figures: list[float] | float) -> None:
        """Append a sample's rows, a millisecond apart: cpu, wait, gpu and gpu_memory a figure a device, memory one."""
        kinds = {
            "cpu": ("cpu", "CPUUtilization", "cpu"),
            "wait": ("cpu", "I/OWaitPercentage", "cpu"),
            "gpu": ("gpu", "GPUUtilization", "gpu"),
            "gpu_memory": ("gpu", "GPUMemoryUtilization", "gpu"),
        }
        rows: list[dict[str, Any]] = []
        for name, given in figures.items():
            if name == "memory":
                rows.append({"Type": "memory", "Name": "MemoryUsedPercent", "Dimension": "", "Value": given})
                continue
            kind, dimension, device = kinds[name]
            assert isinstance(given, list)
            rows += [
                {"Type": kind, "Name": f"{device}{at}", "Dimension": dimension, "Value": value}
                for at, value in enumerate(given)
            ]
        lines = [
            json.dumps({**row, "NodeId": node, "Timestamp": START + seconds + at / 1000}) for at, row in enumerate(rows)
        ]
        self.locate_minute(seconds, node).parent.mkdir(parents=True, exist_ok=True)
        with self.locate_minute(seconds, node).open("a") as file:
            file.write("".join(f"{line}\n" for line in lines))

    def locate_minute(self, seconds: float, node: str = "algo-1") -> Path:
        minute = int(START + seconds) // 60 * 60
        hour = time.strftime("%Y%m%d%H", time.gmtime(minute))
        return self.folder / "system" / "incremental" / hour / f"{minute}.{node}.json"

    def add_events(self, events: list[tuple[str, float, float, dict[str, Any]]], node: str = "0-algo-1") -> Path:
        """Write a file of events: phase, begin in seconds, duration in seconds, args."""
        phases = sorted({phase for phase, _, _, _ in events})
        items: list[dict[str, Any]] = [
            {
                "name": "process_name",
                "ph": "M",
                "pid": 0,
                "args": {"start_time_since_epoch_in_micros": int(START * 1e6)},
            }
        ]
        items += [
            {"name": "process_name", "ph": "M", "pid": at, "args": {"name": phase}}
            for at, phase in enumerate(phases, 1)
        ]
        items += [
            {
                "name": phase,
                "pid": phases.index(phase) + 1,
                "ph": "X",
                "ts": begin * 1e6,
                "dur": long * 1e6,
                "args": args,
            }
            for phase, begin, long, args in events
        ]
        end = max(begin + long for _, begin, long, _ in events)
        folder = self.folder / "framework" / "pevents" / time.strftime("%Y%m%d%H", time.gmtime(START + end))
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{int((START + end) * 1e6)}_{node}_pythontimeline.json"
        path.write_text("[\n" + ",\n".join(map(json.dumps, items)) + "\n]\n")
        return path

    def end(self) -> None:
        """Say that no more comes."""
        (self.folder / "system").mkdir(parents=True, exist_ok=True)
        (self.folder / "system" / "training_job_end.ts").touch()
