"""Tests of job admission: order, and messages to waiting jobs."""

from pathlib import Path
from threading import Event, Thread

from emulator.jobs.runs.admission import Admission, find_most_jobs
from emulator.state.disk import DiskBudget
from tests.waiting import wait_until


class Job:
    """A job that asks to be let in, in a thread of its own."""

    def __init__(self, admission: Admission, number: int, hosts: int = 1) -> None:
        self.arn = f"job-{number}"
        self.told: list[str] = []
        self.stop = Event()
        self.done = Event()
        arguments = (self.arn, number, hosts, self.stop, self.told.append)

        def ask() -> None:
            admission.wait(*arguments)
            self.done.set()

        self.thread = Thread(target=ask)
        self.thread.start()


def let_in(job: Job) -> None:
    assert job.done.wait(60)
    job.thread.join()


def test_the_oldest_job_is_admitted_first() -> None:
    admission = Admission(1)
    first = Job(admission, 1)
    let_in(first)
    assert first.told == []
    later, earlier = Job(admission, 3), None
    wait_until(lambda: later.told)
    earlier = Job(admission, 2)
    wait_until(lambda: earlier.told)
    assert "1 of the 1 instances" in later.told[0]
    assert "0 jobs are before" in later.told[0]
    assert not later.done.is_set()
    assert not earlier.done.is_set()
    admission.leave(first.arn)
    let_in(earlier)
    assert not later.done.is_set()
    admission.leave(earlier.arn)
    let_in(later)
    assert len(later.told) == 1


def test_many_hosts_take_many_places_and_more_than_there_are_run_alone() -> None:
    admission = Admission(2)
    admission.reattach("running", 1)
    wide = Job(admission, 1, hosts=5)
    wait_until(lambda: wide.told)
    small = Job(admission, 2)
    wait_until(lambda: small.told)  # it would fit, and yet nobody overtakes
    admission.leave("running")
    let_in(wide)
    assert not small.done.is_set()
    admission.leave(wide.arn)
    admission.leave(wide.arn)
    let_in(small)


def test_a_stopped_job_stops_waiting_and_takes_no_place() -> None:
    admission = Admission(1)
    admission.reattach("running", 1)
    stopped = Job(admission, 1)
    wait_until(lambda: stopped.told)
    stopped.stop.set()
    let_in(stopped)
    admission.leave("running")
    following = Job(admission, 2)
    let_in(following)


def test_a_full_disk_lets_nobody_in(tmp_path: Path) -> None:
    job = Job(Admission(None, DiskBudget(tmp_path, 2**60)), 1)
    wait_until(lambda: job.told)
    assert "disk" in job.told[0]
    assert "--disk-reserve" in job.told[0]
    job.stop.set()
    let_in(job)
    let_in(Job(Admission(None, DiskBudget(tmp_path, 0)), 1))


def test_without_a_limit_all_jobs_are_admitted() -> None:
    admission = Admission()
    for number in range(20):
        let_in(Job(admission, number, hosts=3))
    assert find_most_jobs() >= 2


def test_a_recovered_job_keeps_its_slot_and_a_waiting_one_its_turn() -> None:
    admission = Admission(1)
    with admission.paused():
        young = Job(admission, 3)
        admission.reattach("job-1", 1)
        admission.expect("job-2", 2)
    wait_until(lambda: young.told)
    assert "1 of the 1 instances" in young.told[0]
    assert "1 job is before this one" in young.told[0]
    admission.leave("job-1")
    admission.release("job-2")  # it gives up its slots before it waits again
    later = Job(admission, 4)
    wait_until(lambda: later.told)
    assert later.told == ["Waiting for the jobs before this one"]
    assert not young.done.is_set()
    old = Job(admission, 2)
    let_in(old)
    admission.leave("job-2")
    let_in(young)
    admission.expect("job-3", 3)
    admission.leave("job-3")
    let_in(later)


def test_nobody_is_admitted_while_it_is_paused() -> None:
    admission = Admission(1)
    with admission.paused():
        stopped = Job(admission, 1)
        stopped.stop.set()
        let_in(stopped)
    assert stopped.told == []
    let_in(Job(admission, 2))  # the other has no place
