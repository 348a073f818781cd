"""What an image is, whichever back end runs it: its name, its definition, and what pip installs in it."""
