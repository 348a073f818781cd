"""The console: a page that shows jobs, verdicts and tensors. Its sources are in ``web``, built by ``build``."""
