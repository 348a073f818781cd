"""Images on a Docker engine: builds, lookup, content and removal."""
