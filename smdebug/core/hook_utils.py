"""`smdebug.core.hook_utils`, as code written for smdebug imports it."""

from smdebug.writing.run_writer import check_out_dir as verify_and_get_out_dir

__all__ = ["verify_and_get_out_dir"]
