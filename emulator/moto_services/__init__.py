"""Everything that moto holds, mounted in this process. No other package imports moto."""
