"""Substitute for SageMaker's older toolkit, sagemaker_containers.

Its newer name is sagemaker_training.
"""
