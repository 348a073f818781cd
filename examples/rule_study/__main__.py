"""Study of the built-in rules over healthy and faulty trainings.

python -m examples.rule_study > docs/rules-study.md
"""

import logging
import tempfile
from pathlib import Path

import torch

from examples.rule_study.judging import CHOSEN, REQUIRED, Judgement, judge_all
from examples.rule_study.reading import INTRODUCTION, READING
from examples.rule_study.trainings import HEALTHY, SICK
from smdebug.rules.builtin import list_names
from smdebug.trials import create_trial

Verdicts = dict[str, dict[str, Judgement]]


def study(name: str, folder: Path) -> tuple[dict[str, Judgement], dict[str, Judgement]]:
    """Train one of the trainings twice, and return what the rules say with defaults and with chosen parameters."""
    training = (HEALTHY | SICK)[name]
    for seed in (0, 1):
        training.run(folder / str(seed), seed)
    trial, other = (create_trial(str(folder / str(seed)), name=f"seed-{seed}") for seed in (0, 1))
    with_defaults, with_chosen = (
        judge_all(trial, other, parameters, training.framework, folder) for parameters in (REQUIRED, CHOSEN)
    )
    return with_defaults, with_chosen


def main() -> None:
    """Print the page."""
    torch.set_num_threads(1)
    # What the rules say to their log is in the tables.
    logging.disable(logging.WARNING)
    with_defaults: Verdicts = {}
    with_chosen: Verdicts = {}
    for name in HEALTHY | SICK:
        with tempfile.TemporaryDirectory() as folder:
            with_defaults[name], with_chosen[name] = study(name, Path(folder))
    print(render(with_defaults, with_chosen), end="")


def render(with_defaults: Verdicts, with_chosen: Verdicts) -> str:
    """Return the page."""
    parts = [INTRODUCTION]
    for title, trainings in (("Healthy", HEALTHY), ("Sick", SICK)):
        parts.append(f"| {title} | what it is |\n|---|---|")
        parts[-1] += "".join(f"\n| {name} | {training.says} |" for name, training in trainings.items())
    parts.append("## With the defaults")
    parts += [_build_table(with_defaults, list(HEALTHY)), _build_table(with_defaults, list(SICK))]
    parts += ["What fired in healthy trainings, in the rules' own words:", _list_findings(with_defaults, list(HEALTHY))]
    fired = [judgement for verdicts in with_defaults.values() for judgement in verdicts.values() if judgement.finding]
    agreed = sum(bool(judgement.agrees) for judgement in fired)
    parts.append(f"Of {len(fired)} findings, {agreed} are confirmed by computing the formula again.")
    parts.append(READING)
    rows = [
        f"| {name} | " + ", ".join(f"`{key}` {value}" for key, value in parameters.items()) + " |"
        for name, parameters in sorted(CHOSEN.items())
        if parameters != REQUIRED.get(name)
    ]
    parts.append("| rule | chosen |\n|---|---|\n" + "\n".join(rows))
    parts += [_build_table(with_chosen, list(HEALTHY)), _build_table(with_chosen, list(SICK))]
    parts += ["What is left in healthy trainings:", _list_findings(with_chosen, list(HEALTHY)) or "* nothing"]
    silent = [name for name in SICK if not any(judgement.finding for judgement in with_chosen[name].values())]
    parts.append(f"Sick trainings that no rule finds with them: {', '.join(silent) or 'none'}.")
    return "\n\n".join(parts) + "\n"


def _build_table(verdicts: Verdicts, trainings: list[str]) -> str:
    lines = [f"| | {' | '.join(trainings)} |", "|---" * (len(trainings) + 1) + "|"]
    for rule in list_names():
        cells = [str(verdicts[name][rule]) if rule in verdicts[name] else "" for name in trainings]
        lines.append(f"| {rule} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _list_findings(verdicts: Verdicts, trainings: list[str]) -> str:
    return "\n".join(
        f"* {name}, {rule}: {judgement.finding}"
        for name in trainings
        for rule, judgement in verdicts[name].items()
        if judgement.finding is not None
    )


if __name__ == "__main__":
    main()
