"""Rendering of numbers as HTML pages, SVG pictures and notebooks.

The modules here know no rule.
"""
