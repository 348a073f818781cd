"""The web console: jobs, verdicts and tensors in a browser.

Its sources are in ``web``, and ``build`` builds them.
"""
