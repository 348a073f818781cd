"""Demo: two training jobs on handwritten digits, by an ordinary client."""
