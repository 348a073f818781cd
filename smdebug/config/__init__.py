"""What a hook is told to save: collections, save and reduction configurations, and the JSON they come from."""
