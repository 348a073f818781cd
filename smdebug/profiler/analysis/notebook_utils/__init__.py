"""Notebook charts of a profiled job (extra `[analysis]`), and its readers.

Only the charts need bokeh, which the extra installs.
"""
