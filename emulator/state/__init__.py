"""The state folder: its lock, its disk, its archive, its damage and its replica."""
