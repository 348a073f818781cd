"""SageMaker's XGBoost algorithm: training without a script.

Hyperparameters and channels alone say what is trained.
"""
