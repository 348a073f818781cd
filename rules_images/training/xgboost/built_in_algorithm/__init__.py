"""SageMaker's XGBoost algorithm: trains from hyperparameters and channels alone, without a script."""
