"""Lambda functions in moto, which the emulator runs."""
