"""Checking a hook's out_dir, under the name that code written for smdebug knows."""

from smdebug.core.run_writer import check_out_dir as verify_and_get_out_dir

__all__ = ["verify_and_get_out_dir"]
