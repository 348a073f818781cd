"""Training jobs and their rule evaluations: stored, driven through AWS's life of a job, announced."""

from emulator.jobs.training_jobs import TrainingJobs

__all__ = ["TrainingJobs"]
