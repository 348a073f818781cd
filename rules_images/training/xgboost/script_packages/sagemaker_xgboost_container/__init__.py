"""Substitute for the package of SageMaker's XGBoost container.

Scripts import readers of channels and requests, checkpoints and hosts from it.
"""
