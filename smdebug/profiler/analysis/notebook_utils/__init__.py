"""A training job's readers, and charts of what they read, for notebooks; the charts need bokeh (`[analysis]`)."""
