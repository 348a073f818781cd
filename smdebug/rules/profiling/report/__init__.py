"""ProfilerReport output: data collected from a job, the page and the notebook."""
