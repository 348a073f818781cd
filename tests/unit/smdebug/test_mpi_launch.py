"""Tests of the toolkit's mpirun command in Open MPI 5's words."""

from smdebug.mpi_launch import fit_options


def test_long_options_get_two_dashes_and_values_stay() -> None:
    command = ["mpirun", "--host", "algo-1:2", "-np", "2", "-mca", "btl", "^openib", "-bind-to", "none", "-x", "PATH"]
    fitted = ["mpirun", "--host", "localhost:2", *command[3:8], "--bind-to", "none", "-x", "PATH"]
    assert fit_options(command, ["algo-1"]) == fitted


def test_a_module_is_not_preloaded_and_a_library_is() -> None:
    command = ["mpirun", "-x", "LD_PRELOAD=/venv/gethostname.py", "-x", "LD_PRELOAD=/venv/gethostname.so"]
    assert fit_options(command, ["algo-1"]) == ["mpirun", "-x", "LD_PRELOAD=/venv/gethostname.so"]


def test_several_hosts_keep_their_names() -> None:
    command = ["mpirun", "--host", "algo-1,algo-2", "-np", "2"]
    assert fit_options(command, ["algo-1", "algo-2"]) == command
