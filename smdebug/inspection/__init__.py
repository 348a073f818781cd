"""Chart data of runs and profiles, reduced to what a screen can show."""
