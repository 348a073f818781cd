"""Contract suite of container back ends, for pytest.

    SMDEBUG_EMULATOR_TEST_BACK_ENDS=NAME pytest --pyargs container_runtime.contract

runs it against the back end of that entry point; docs/back_ends.md says how to write one.
"""
