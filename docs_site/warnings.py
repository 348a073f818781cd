"""The reference of warnings, from their table."""

from emulator.jobs.model.warnings import WARNING_KINDS, WARNINGS_HEADER


def build_warnings_page() -> str:
    """Return the page, which lists every warning code with its meaning and remedy."""
    return "\n".join(
        [
            "# Warnings",
            "",
            "A job has a list of warnings: what runs otherwise than it was asked for, or was saved or judged less than",
            "it seems. Each has a `code`, a `text` and a `remedy`. The list is the same everywhere: on the job's page",
            "in the console, in `smdebug-emulator describe` (`Warnings` of `--json`; `jobs` marks such jobs with `!`),",
            "below the table and in the report of the pytest plugin, in a notebook, and in `warnings` of",
            "`GET /_emulator/jobs` and `GET /_emulator/jobs/REGION/NAME`. Those of a rule belong to its training job.",
            "The job's log has them, too. Processing jobs have theirs in the log and in the header that follows.",
            "",
            "The answers to CreateTrainingJob and CreateProcessingJob have the warnings known by then in the header",
            f"`{WARNINGS_HEADER}`, as a JSON list; their bodies are AWS's:",
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
