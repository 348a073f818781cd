"""Description of the API: its answers, the OpenAPI document and the console's types."""
