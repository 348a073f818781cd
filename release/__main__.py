"""Files of a release: distributions, list of packages, provenance, changes and documentation.

``make release`` runs it. Everything but the upload is done: the files are in one folder.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from emulator import VERSION
from release.documentation import write_versions

ROOT = Path(__file__).resolve().parents[1]
URL_VARIABLE = "SMDEBUG_EMULATOR_PROJECT_URL"
"""Variable that hatch_build.py reads the address of the project's links from."""
_LOCK = ROOT / "rules_images" / "emulator" / "emulator-py3.11-x86_64.lock"


class ReleaseError(Exception):
    """The release cannot be made; the text is one line that says what to do."""


def main() -> None:
    """Make the files of a release."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder for the files; it must not exist")
    parser.add_argument("--url", default="", help="address at which the project is published, for the links")
    parser.add_argument("--tools", type=Path, default=Path(sys.executable), help="interpreter that has build and twine")
    parser.add_argument(
        "--rehearse", action="store_true", help="accept a commit without a tag of a version, and changes"
    )
    parser.add_argument(
        "--site",
        type=Path,
        help="folder with earlier versions' documentation, to add this one's (default: FOLDER/docs)",
    )
    given = parser.parse_args()
    try:
        make_release(given.folder, given.tools, rehearse=given.rehearse, url=given.url, site=given.site)
    except ReleaseError as error:
        raise SystemExit(str(error)) from error


def make_release(folder: Path, tools: Path, *, rehearse: bool, url: str = "", site: Path | None = None) -> None:
    """Make the files of a release.

    Args:
        folder: folder for the files.
        tools: interpreter of an environment with build, twine and cyclonedx-bom (dependency group ``release``).
        rehearse: whether to accept a commit without a tag of a version, and uncommitted changes.
        url: address at which the project is published, for the links of the metadata; a rehearsal needs none.
        site: folder with the documentation of earlier versions, each in a folder of its own; this one's is added.

    Raises:
        ReleaseError: the address is missing or none, the commit has no tag of a version, or a step failed.
    """
    check_url(url, rehearse=rehearse)
    if folder.exists():
        raise ReleaseError(f"{folder} exists: remove it, or name another folder.")
    version = VERSION if rehearse else find_version()
    changes = read_changes(version)
    folder.mkdir(parents=True)
    with TemporaryDirectory() as source:
        copy_source(Path(source), version)
        # The wheel is built from the sdist, so the sdist is complete.
        command = [str(tools), "-m", "build", "--outdir", str(folder.absolute()), source]
        _run(command, "building the distributions", {**os.environ, URL_VARIABLE: url})
    distributions = sorted(folder.iterdir())
    _run([str(tools), "-m", "twine", "check", "--strict", *map(str, distributions)], "checking the metadata")
    _write_sbom(tools, folder / "sbom.cdx.json")
    (folder / "CHANGES.md").write_text(changes, encoding="utf-8")
    site = folder / "docs" if site is None else site
    command = [sys.executable, "-m", "mkdocs", "--quiet", "build", "--site-dir", str((site / version).absolute())]
    _run(command, "building the documentation")
    write_versions(site)
    (folder / "provenance.json").write_text(json.dumps(describe_provenance(distributions), indent=2), encoding="utf-8")
    files = [*distributions, *(folder / name for name in ("CHANGES.md", "provenance.json", "sbom.cdx.json"))]
    sums = "".join(f"{hash_file(each)}  {each.name}\n" for each in files)
    (folder / "SHA256SUMS").write_text(sums, encoding="utf-8")
    print(f"{folder} holds version {version}; what is left is: twine upload {folder}/*.whl {folder}/*.tar.gz")  # noqa: T201


def check_url(url: str, *, rehearse: bool) -> None:
    """Check the address at which the project is published.

    Raises:
        ReleaseError: it is not one of HTTPS, or is missing where it is not a rehearsal.
    """
    if not url and rehearse:
        return
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment or any(map(str.isspace, url)):
        raise ReleaseError(
            f"The links of a release need the address at which the project is published, and {url!r} is none: "
            "make release URL=https://HOST/OWNER/PROJECT."
        )


def find_version() -> str:
    """Return the version of the tag that the checkout's commit has, such as 0.2.0 of the tag v0.2.0.

    Raises:
        ReleaseError: the checkout has changes, or its commit has no such tag, or several.
    """
    if changed := _git("status", "--porcelain"):
        raise ReleaseError(f"The checkout has changes ({changed.splitlines()[0].strip()}, …): commit them first.")
    versions = [tag.removeprefix("v") for tag in _git("tag", "--points-at", "HEAD", "v[0-9]*").split()]
    if len(versions) != 1:
        raise ReleaseError(
            f"This commit has {', '.join(versions) or 'none'} as tags of versions, and a release needs one: "
            "set it with git tag v0.2.0; --rehearse goes on without."
        )
    return versions[0]


def copy_source(folder: Path, version: str) -> None:
    """Copy the files of the checkout that git knows, with a version."""
    for name in filter(None, _git("ls-files", "-z").split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    module = folder / "emulator" / "__init__.py"
    text, count = re.subn(
        r'^VERSION = "[^"]+"$', f'VERSION = "{version}"', module.read_text(encoding="utf-8"), flags=re.M
    )
    assert count == 1
    module.write_text(text, encoding="utf-8")


def read_changes(version: str, changelog: str | None = None) -> str:
    """Return the section of a version in CHANGELOG.md, without its heading.

    Raises:
        ReleaseError: the changelog has no such section.
    """
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8") if changelog is None else changelog
    found = re.search(rf"^## {re.escape(version)}(?: .*)?\n((?:(?!^## ).*\n?)*)", text, re.MULTILINE)
    if found is None:
        raise ReleaseError(f"CHANGELOG.md has no section {version}: add a line `## {version}` and what is new.")
    return found[1].strip() + "\n"


def describe_provenance(distributions: list[Path]) -> dict[str, Any]:
    """Return an in-toto statement that says from which commit the distributions were built, and with what."""
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": each.name, "digest": {"sha256": hash_file(each)}} for each in distributions],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "python -m build",
                "externalParameters": {},
                "resolvedDependencies": [
                    {"uri": "git:HEAD", "digest": {"gitCommit": _git("rev-parse", "HEAD").strip()}}
                ],
            },
            "runDetails": {"builder": {"id": "make release", "version": {"python": sys.version.split()[0]}}},
        },
    }


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_sbom(tools: Path, path: Path) -> None:
    # The packages and hashes of the extra `emulator`, as its image installs them.
    requirements = path.with_name("requirements.txt")
    lines = _LOCK.read_text(encoding="utf-8").splitlines()
    requirements.write_text("\n".join(line for line in lines if not line.startswith("#")), encoding="utf-8")
    command = [str(tools), "-m", "cyclonedx_py", "requirements", "--output-file", str(path), str(requirements)]
    _run(command, "listing the packages")
    requirements.unlink()


def _git(*arguments: str) -> str:
    command = [shutil.which("git") or "git", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise ReleaseError(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout


def _run(command: list[str], what: str, environment: dict[str, str] | None = None) -> None:
    print(f"{what} ...", flush=True)  # noqa: T201
    done = subprocess.run(
        command, check=False, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    if done.returncode:
        raise ReleaseError(f"{what} failed:\n" + "\n".join(done.stdout.strip().splitlines()[-15:]))


if __name__ == "__main__":
    main()
