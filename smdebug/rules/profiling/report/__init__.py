"""ProfilerReport's pages: what of a job they need, kept while it comes, and the page and the notebook made of it."""
