"""End-to-end tests of the console, in one browser, on the jobs of one emulator."""
