"""SageMaker operations that moto answers, and what is replaced in them."""
