"""Description of the API: answers, OpenAPI document, types for the console."""
