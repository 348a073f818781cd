"""Reading a run: its files, indexes and records, and one tensor of it.

`run_files` lists and reads files, `index_reader` and `step_index` say what was saved where, `records` decodes.
`run_reader` is the one way to values, `event_cache` what it keeps, `stacks` many small tensors as one. `tensor` is what
users hold.
"""
