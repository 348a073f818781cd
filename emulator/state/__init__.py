"""The state folder: its lock, disk, archive, stores, damage and replica."""
