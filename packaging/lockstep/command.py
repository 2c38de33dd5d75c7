"""The command `lockstep` of the Python package: finds torch and becomes the program.

The program is linked to the libraries in torch's folder and finds them beside its own package by
RPATH. Where torch is installed in another folder of packages (a user's, one of --target), they are
named to the loader instead. Nothing of torch is imported: Python's part takes some 50 ms.
"""
import importlib.util
import os
import pathlib
import re
import sys

from lockstep import built

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = HERE / "bin" / "lockstep"
EXIT_MACHINE = 4  # as the program's own (docs/errors.md)


class Unfit(Exception):
    """What is missing here, and what to do."""

    def __init__(self, problem, advice):
        super().__init__(f"error: {problem}\n  try: {advice}")


def folder_of(package):
    """Where a package is installed, without importing it; None where it is not."""
    spec = importlib.util.find_spec(package)
    places = spec.submodule_search_locations if spec else None
    return pathlib.Path(list(places)[0]).resolve() if places else None


def version_of(torch):
    """"2.13.0+cpu" out of torch's version.py; empty when it names none."""
    try:
        text = (torch / "version.py").read_text(encoding="utf-8")
    except OSError:
        return ""
    found = re.search(r"^__version__ *= *'([^']+)'", text, re.MULTILINE)
    return found[1] if found else ""


def check_torch(torch):
    install = f"{sys.executable} -m pip install 'torch=={built.TORCH}.*'"
    if torch is None:
        raise Unfit(f"no torch for {sys.executable}; lockstep {built.VERSION} needs torch "
                    f"{built.TORCH}", install)
    version = version_of(torch)
    if re.match(r"\d+\.\d+", version) is None or not (torch / "lib" / "libtorch_cpu.so").exists():
        raise Unfit(f"{torch} is not a whole torch", install.replace("install", "install --force-reinstall"))
    if re.match(r"\d+\.\d+", version)[0] != built.TORCH:
        raise Unfit(f"torch {version} in {torch.parent}; lockstep {built.VERSION} was built for "
                    f"torch {built.TORCH}", install + ", here or in an environment of its own")


def library_folders():
    """Those that the program's RPATH does not reach."""
    torch = folder_of("torch")
    check_torch(torch)
    folders = [] if torch.parent == HERE.parent else [torch / "lib"]
    pyarrow = folder_of("pyarrow")
    if pyarrow is not None and pyarrow.parent != HERE.parent:
        folders.append(pyarrow)
    return [str(folder) for folder in folders]


def main():
    try:
        folders = library_folders()
        if folders:
            before = os.environ.get("LD_LIBRARY_PATH")
            os.environ["LD_LIBRARY_PATH"] = ":".join(folders + ([before] if before else []))
        os.execv(PROGRAM, ["lockstep", *sys.argv[1:]])
    except Unfit as unfit:
        print(unfit, file=sys.stderr)
    except OSError as error:
        print(f"error: {PROGRAM} cannot be started: {error.strerror}\n  try: {sys.executable} -m pip "
              "install --force-reinstall --no-deps lockstep", file=sys.stderr)
    sys.exit(EXIT_MACHINE)
