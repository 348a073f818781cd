"""Commands about jobs and what they saved."""
