"""The Docker back end: containers on an engine, the images that they run, and the engine itself."""
