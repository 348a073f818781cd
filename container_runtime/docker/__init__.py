"""Docker back end: containers, their images, and the engine itself."""
