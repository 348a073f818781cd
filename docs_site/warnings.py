"""The reference of warnings, from their table."""

from emulator.jobs.model.warnings import WARNING_KINDS, WARNINGS_HEADER


def build_warnings_page() -> str:
    """Return the page, which lists every warning code with its meaning and remedy."""
    return "\n".join(
        [
            "# Warnings",
            "",
            "A warning says that a job runs differently than requested, or that it saved or judged less than it seems.",
            "Each warning has a `code`, a `text` and a `remedy`. The warnings of a rule belong to its training job.",
            "",
            "You find the warnings of a training job in:",
            "",
            "- its page in the console, and its log",
            "- `smdebug-emulator describe` (`Warnings` of `--json`); `smdebug-emulator jobs` marks the job with `!`",
            "- the output and the report of the pytest plugin",
            "- a notebook",
            "- `warnings` of `GET /_emulator/jobs` and `GET /_emulator/jobs/REGION/NAME`",
            "",
            "A processing job has its warnings in its log and in the header described below.",
            "",
            "The answers to CreateTrainingJob and CreateProcessingJob have the warnings that are known by then in the",
            f"header `{WARNINGS_HEADER}`, as a JSON list. The bodies are the same as AWS's:",
            "",
            "```python",
            "created = sagemaker.create_training_job(**request)",
            'headers = created["ResponseMetadata"]["HTTPHeaders"]',
            f'warnings = json.loads(headers.get("{WARNINGS_HEADER}", "[]"))',
            "```",
            "",
            "| code | when | what to do |",
            "|---|---|---|",
            *(
                f"| `{code}` | {_escape(kind.meaning)} | {_escape(kind.remedy)} |"
                for code, kind in WARNING_KINDS.items()
            ),
            "",
        ]
    )


def _escape(text: str) -> str:
    return text.replace("|", "\\|")
