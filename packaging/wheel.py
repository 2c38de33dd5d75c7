#!/usr/bin/env python3
"""Makes a Python wheel out of a build of lockstep: scripts/package calls it.

    packaging/wheel.py --build BUILD [--out dist]

What is in it: docs/install.md. The libraries that the program needs, and those that these need, go
along as Debian has them, but for the C and C++ libraries, which every system has, and torch's, which
the wheel requires. The program alone has an RPATH, which the loader uses for all of them
(DT_RPATH; a DT_RUNPATH would count for the program's own needs only). auditwheel does not serve: it
gives every library a new name and a RUNPATH of its own, for libraries that share a Python process.

The platform tag is what the symbol versions of all files in it ask of the system.

Needs binutils and patchelf; the standard library is enough of Python.
"""
import argparse
import base64
import hashlib
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Of the system, as torch's own libraries take them.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libresolv.so.2",
          "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libstdc++.so.6", "libgcc_s.so.1"}
# Of the wheels that it requires; their names in any release.
WHEELS = re.compile(r"lib(torch|c10|gomp|cuda|cudart|nccl|arrow|parquet)\w*\.so")

# The first glibc of distributions whose libstdc++ has these symbols (PEP 600 speaks of glibc alone
# but promises that the wheel runs): GCC 11 in RHEL 9 (2.34), 12 in Ubuntu 22.04, 13 in Fedora 38.
GLIBC_OF_GLIBCXX = {29: 34, 30: 35, 31: 37, 32: 38, 33: 40}

# Header-only libraries and a script, which are in the program itself.
HEADER_PACKAGES = ["libboost-dev", "libcli11-dev", "libprotozero-dev", "nlohmann-json3-dev",
                   "libtomlplusplus-dev", "libjs-dygraphs"]

EPOCH = (2020, 1, 1, 0, 0, 0)  # of every file: equal content gives an equal wheel


def fail(text):
    sys.exit(f"packaging/wheel.py: {text}")


def output_of(*words):
    try:
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout
    except FileNotFoundError:
        fail(f"no {words[0]}; apt-get install binutils patchelf")
    except subprocess.CalledProcessError as error:
        fail(f"{' '.join(map(str, words))}: {error.stderr.strip()}")


def needed(file):
    """Names of the libraries that an ELF file asks for itself."""
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output_of("readelf", "--dynamic", "--wide", str(file)))


def versions_needed(file):
    """Highest symbol version that a file asks for, by kind: {"GLIBC": (2, 34), ...}."""
    out = {}
    text = output_of("readelf", "--version-info", "--wide", str(file))
    needs = text.partition(".gnu.version_r")[2]
    for kind, version in re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI)_([0-9.]+)", needs):
        out[kind] = max(out.get(kind, ()), tuple(map(int, version.split("."))))
    return out


def dynamic_symbols(file):
    """(names that a file defines without a version, {version: names that it asks for})."""
    defined, asked = set(), {}
    for line in output_of("readelf", "--dyn-syms", "--wide", str(file)).splitlines():
        words = line.split()
        if len(words) < 8 or words[4] not in ("GLOBAL", "WEAK"):
            continue
        name, _, version = words[7].partition("@")
        if words[6] != "UND" and not version:
            defined.add(name)
        elif words[6] == "UND" and version:
            asked.setdefault(version, set()).add(name)
    return defined, asked


def section(content, name):
    """(offset, size, linked section's offset) of a section of an ELF file of 64 bits."""
    at, = struct.unpack_from("<Q", content, 0x28)
    size, count, names = struct.unpack_from("<HHH", content, 0x3A)
    headers = [struct.unpack_from("<IIQQQQII", content, at + i * size) for i in range(count)]
    for header in headers:
        start = headers[names][4] + header[0]
        if content[start:content.index(0, start)] == name.encode():
            return header[4], header[5], headers[header[6]][4]
    return None


def loosen(file, defined):
    """Has the loader not ask the system for those symbol versions of which the program itself defines
    every symbol (src/older_systems.cpp): it looks there first, and takes what has no version. They
    become another version that the file needs of the same library. Returns them."""
    versions = {version for version, names in dynamic_symbols(file)[1].items() if names <= defined}
    if not versions:
        return versions
    content = bytearray(file.read_bytes())
    at, _, strings = section(content, ".gnu.version_r")
    while True:  # Elf64_Verneed, each with its Elf64_Vernaux
        _, count, _, first, following = struct.unpack_from("<HHIII", content, at)
        places, need = {}, at + first
        for _ in range(count):
            _, _, _, name, further = struct.unpack_from("<IHHII", content, need)
            text = content[strings + name:content.index(0, strings + name)].decode()
            places[text] = need
            need += further
        kept = min(set(places) - versions, default=None)
        for version in versions & set(places):
            if kept is None:
                fail(f"{file}: needs nothing but {version} of that library")
            content[places[version]:places[version] + 4] = content[places[kept]:places[kept] + 4]
            content[places[version] + 8:places[version] + 12] = content[places[kept] + 8:places[kept] + 12]
        if not following:
            break
        at += following
    file.write_bytes(content)
    return versions


def platform_tag(versions, machine):
    """"manylinux_2_35_x86_64" out of what all files need."""
    glibc = max(versions.get("GLIBC", (2, 17))[1], 17)
    glibcxx = versions.get("GLIBCXX", (3, 4, 0))[-1]
    later = [first for symbols, first in GLIBC_OF_GLIBCXX.items() if glibcxx >= symbols]
    if glibcxx > max(GLIBC_OF_GLIBCXX):
        fail(f"GLIBCXX_3.4.{glibcxx}: the first glibc beside it is not known here")
    return f"manylinux_2_{max([glibc] + later)}_{machine}"


def library_places():
    """Name -> path of the system's libraries for this processor."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    processor = {"x86_64": "x86-64", "aarch64": "AArch64"}[os.uname().machine]
    places = {}
    for name, kind, path in re.findall(r"^\s*(\S+) \((.*)\) => (\S+)", output_of("ldconfig", "-p"),
                                       re.MULTILINE):
        if processor in kind:
            places.setdefault(name, pathlib.Path(path))
    return places


def closure(files, places, folder):
    """Libraries that go along, name -> path. `folder` has some of our own."""
    out, queue = {}, list(files)
    while queue:
        for name in needed(queue.pop()):
            if name in SYSTEM or WHEELS.match(name) or name in out or (folder / name).exists():
                continue
            if name not in places:
                fail(f"no {name} on this system")
            out[name] = places[name]
            queue.append(places[name])
    return out


class Packages:
    """Debian packages that files came from, with licences and sources."""

    def __init__(self):
        self.files = {}  # package -> names

    def add(self, name, path):
        # /lib is a link to /usr/lib, and dpkg knows a file by one of the two.
        real = path.resolve()
        for spelling in (real, pathlib.Path(str(real).replace("/usr/lib", "/lib", 1))):
            found = subprocess.run(["dpkg-query", "--search", str(spelling)], capture_output=True,
                                   text=True, check=False)
            if found.returncode == 0:
                self.files.setdefault(found.stdout.split(":")[0], []).append(name)
                return
        fail(f"{path}: of no Debian package, so its licence is not known")

    def write(self, folder, loosened):
        lines = ["# What this wheel carries of Debian", "",
                 "Files of these packages; sources: https://sources.debian.org/src/SOURCE/VERSION/ or",
                 "`apt-get source SOURCE=VERSION`. Licences: PACKAGE/copyright beside this file.", ""]
        for version, names in sorted(loosened.items()):
            lines += [f"Changed: {', '.join(names)} does not ask for the symbol version {version}, "
                      "since lockstep brings its symbols.", ""]
        lines += ["| package | source | version | files |", "| --- | --- | --- | --- |"]
        for package in sorted(set(self.files) | set(HEADER_PACKAGES)):
            query = subprocess.run(["dpkg-query", "--show", "-f",
                                    "${source:Package}\t${source:Version}\n", package],
                                   capture_output=True, text=True, check=False)
            copyright_file = pathlib.Path("/usr/share/doc") / package / "copyright"
            if query.returncode != 0 or not copyright_file.exists():
                if package in HEADER_PACKAGES:
                    continue  # not built with
                fail(f"{copyright_file}: not there; a wheel without its licences may not be passed on")
            (folder / package).mkdir(parents=True)
            shutil.copy(copyright_file, folder / package / "copyright")
            source, version = query.stdout.splitlines()[0].split("\t")
            names = " ".join(sorted(self.files.get(package, ["(compiled in)"])))
            lines.append(f"| {package} | {source} | {version} | {names} |")
        (folder / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def copy_torch_licence(python, folder):
    """Of its headers, whose templates are in the program."""
    text = ("import importlib.metadata as m\n"
            "for f in m.files('torch'):\n"
            "    if f.parts[1:] == ('licenses', 'LICENSE'): print(f.locate())")
    path = output_of(python, "-c", text).strip() or fail(f"{python}: its torch has no LICENSE")
    (folder / "torch").mkdir()
    shutil.copy(path, folder / "torch" / "LICENSE")


def cache_value(build, name):
    found = re.search(rf"^{name}:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)
    return found[1] if found else fail(f"{build}/CMakeCache.txt: no {name}")


def installed(python, package):
    """(version, requires-python) of a package of the build's Python; None when it is not there."""
    text = ("import importlib.metadata as m, sys\n"
            "try: d = m.distribution(sys.argv[1])\n"
            "except m.PackageNotFoundError: sys.exit(3)\n"
            "print(d.version, d.metadata.get('Requires-Python') or '>=3.10', sep='\\n')")
    found = subprocess.run([python, "-c", text, package], capture_output=True, text=True, check=False)
    return tuple(found.stdout.split("\n")[:2]) if found.returncode == 0 else None


def release(version):
    return ".".join(version.split(".")[:2])


def requirement(torch):
    """"torch>=2.13,<2.14" for 2.13.0: its C++ library changes with every minor release."""
    major, minor = map(int, release(torch).split("."))
    return f"torch>={major}.{minor},<{major}.{minor + 1}"


def metadata(version, torch, requires_python, pyarrow):
    lines = ["Metadata-Version: 2.1", "Name: lockstep", f"Version: {version}",
             "Summary: Data-parallel training across ordinary machines, in one C++ program on libtorch",
             "License: Apache-2.0", f"Requires-Python: {requires_python}",
             f"Requires-Dist: {requirement(torch)}"]
    if pyarrow:
        lines += ["Provides-Extra: parquet",
                  f"Requires-Dist: pyarrow=={pyarrow.split('.')[0]}.*; extra == \"parquet\""]
    lines += ["Description-Content-Type: text/markdown", "",
              "`lockstep demo` is a first run; `lockstep --help` lists the commands."]
    return "\n".join(lines) + "\n"


def copy_stripped(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    output_of("strip", "--strip-unneeded", "-o", str(target), str(source))
    target.chmod(0o755)


def set_rpath(file, *places):
    output_of("patchelf", "--force-rpath", "--set-rpath", ":".join(places), str(file))


def fill(package, build, pyarrow):
    """The folder `lockstep` of the wheel, without licences. Returns the files of Debian's in it, name
    -> path, and the symbol versions that were loosened, version -> names."""
    shutil.copytree(ROOT / "packaging" / "lockstep", package,
                    ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "configs", package / "configs")
    program, libraries = package / "bin" / "lockstep", package / "lib"
    copy_stripped(build / "lockstep", program)
    set_rpath(program, "$ORIGIN/../lib", "$ORIGIN/../../torch/lib", "$ORIGIN/../../pyarrow")
    files = [program]
    libraries.mkdir()
    modules = ["liblockstep_computing.so", "liblockstep_cuda.so"] + (["liblockstep_parquet.so"] if pyarrow else [])
    for name in modules:
        if not (build / name).exists():
            continue
        copy_stripped(build / name, libraries / name)
        set_rpath(libraries / name, "$ORIGIN", "$ORIGIN/../../torch/lib", "$ORIGIN/../../pyarrow")
        files.append(libraries / name)
    found = closure(files, library_places(), libraries)
    for name, path in found.items():
        shutil.copy(path.resolve(), libraries / name)
        (libraries / name).chmod(0o755)
    defined, _ = dynamic_symbols(program)
    loosened = {}
    for file in [program, *sorted(libraries.iterdir())]:
        for version in loosen(file, defined):
            loosened.setdefault(version, []).append(file.name)
    return found, loosened


def write_wheel(folder, path):
    """All files of `folder` and their RECORD, with the times and rights that do not depend on when."""
    info = next(folder.glob("*.dist-info"))
    record = info / "RECORD"
    lines = []
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    for file in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest()).rstrip(b"=")
        lines.append(f"{file.relative_to(folder)},sha256={digest.decode()},{file.stat().st_size}")
    record.write_text("\n".join(lines + [f"{record.relative_to(folder)},,"]) + "\n", encoding="utf-8")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for file in files + [record]:
            entry = zipfile.ZipInfo(str(file.relative_to(folder)), EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if os.access(file, os.X_OK) else 0o100644) << 16
            wheel.writestr(entry, file.read_bytes())


def print_sizes(path):
    with zipfile.ZipFile(path) as wheel:
        entries = sorted(wheel.infolist(), key=lambda entry: -entry.compress_size)
    print(f"\n{'compressed':>12} {'installed':>12}")
    for entry in entries[:12]:
        print(f"{entry.compress_size / 1e6:9.1f} MB {entry.file_size / 1e6:9.1f} MB  {entry.filename}")
    print(f"{path.stat().st_size / 1e6:9.1f} MB {sum(e.file_size for e in entries) / 1e6:9.1f} MB  {path}")


def make(build, out):
    if not (build / "lockstep").exists():
        fail(f"{build}/lockstep: not there; build it first")
    version, python = cache_value(build, "CMAKE_PROJECT_VERSION"), cache_value(build, "LOCKSTEP_PYTHON")
    torch = installed(python, "torch") or fail(f"{python} has no torch")
    pyarrow = installed(python, "pyarrow") if (build / "liblockstep_parquet.so").exists() else None
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        package, info = folder / "lockstep", folder / f"lockstep-{version}.dist-info"
        found, loosened = fill(package, build, pyarrow)
        (package / "built.py").write_text(
            f'"""Written by packaging/wheel.py."""\nVERSION = "{version}"\nTORCH = "{release(torch[0])}"\n',
            encoding="utf-8")
        packages = Packages()
        for name, path in found.items():
            packages.add(name, path)
        info.mkdir()
        packages.write(info / "licenses", loosened)
        copy_torch_licence(python, info / "licenses")
        shutil.copy(ROOT / "LICENSE", info / "licenses" / "LICENSE")
        versions = {}
        for file in [package / "bin" / "lockstep", *(package / "lib").iterdir()]:
            for kind, needs in versions_needed(file).items():
                versions[kind] = max(versions.get(kind, ()), needs)
        tag = f"py3-none-{platform_tag(versions, os.uname().machine)}"
        (info / "METADATA").write_text(
            metadata(version, torch[0], torch[1], pyarrow[0] if pyarrow else None), encoding="utf-8")
        (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: lockstep packaging/wheel.py\n"
                                    f"Root-Is-Purelib: false\nTag: {tag}\n", encoding="utf-8")
        (info / "entry_points.txt").write_text("[console_scripts]\nlockstep = lockstep.command:main\n",
                                               encoding="utf-8")
        out.mkdir(parents=True, exist_ok=True)
        path = out / f"lockstep-{version}-{tag}.whl"
        write_wheel(folder, path)
        cuda = (package / "lib" / "liblockstep_cuda.so").exists()
    print_sizes(path)
    print(f"for torch {release(torch[0])}; needs " +
          ", ".join(f"{kind}_{'.'.join(map(str, v))}" for kind, v in sorted(versions.items())))
    if not cuda:
        print("without the module for GPUs: this build's torch is one for CPUs")
    if not pyarrow:
        print("without the module for Parquet: no pyarrow in this build's Python")
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help="folder of the build")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("dist"))
    options = parser.parse_args()
    make(options.build.resolve(), options.out)


if __name__ == "__main__":
    main()
