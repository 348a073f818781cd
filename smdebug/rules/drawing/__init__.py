"""Pages, pictures and notebooks of numbers; nothing here knows a rule."""
