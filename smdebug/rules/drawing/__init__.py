"""Rendering of numbers as HTML pages, SVG pictures and notebooks.

The modules of this package do not depend on any rule.
"""
