"""Soak: large S3 objects, whole and in parts, at constant emulator memory."""

from tests.end_to_end.test_memory import MIB, MOST, read_memory
from tests.soak.course import Course
from tests.soak.stage import Stage

LONG, SHORT = 2, 0
RUNTIMES = ("process",)
SIZE = 2 * 1024 * MIB


def run(course: Course) -> None:
    """Put an object of 2 GiB and read it in each round."""
    with Stage(course) as stage:
        s3, pid = stage.client("s3"), stage.emulator.process.pid
        path = course.folder / "large"
        with path.open("wb") as file:
            file.truncate(SIZE)
        before = read_memory(pid, "VmRSS")
        for seed, _ in course.draw_rounds():
            if seed % 2:
                with path.open("rb") as body:
                    s3.put_object(Bucket="soak", Key="large", Body=body)
            else:
                s3.upload_file(str(path), "soak", "large")
            read = 0
            for piece in s3.get_object(Bucket="soak", Key="large")["Body"].iter_chunks(MIB):
                read += len(piece)
            grown = read_memory(pid, "VmHWM") - before
            course.figures["most memory more"] = f"{grown / 1e6:,.0f} MB, of an object of {SIZE / 1e9:.2f} GB"
            if read != SIZE or grown > MOST:
                course.fail(seed, f"{read:,} of {SIZE:,} bytes were read, with {grown:,} bytes of memory more")
