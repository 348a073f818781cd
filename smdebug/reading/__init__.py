"""Readers of runs, in layers that only use the ones below.

`tensor`                       the values, shapes and reductions of one tensor
`run_steps`, `record_reader`   which steps are complete, with polling; values by their location
`run_index`, `stacks`          where each value is; small tensors of a step read together (optional)
`event_cache`                  parts of event files, cached and prefetched
`run_files`                    the files of a run, local here and on S3 in `smdebug.storage.s3`

The other modules parse: index files (`index_files`, `index_templates`, `step_index`) and records (`records`).
"""
