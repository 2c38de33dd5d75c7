#!/usr/bin/env python3
"""packaging/wheel.py and packaging/lockstep/command.py, part by part, in seconds."""
import contextlib
import importlib.util
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "packaging"))
sys.dont_write_bytecode = True
sys.modules["lockstep.built"] = types.SimpleNamespace(VERSION="0.1.0", TORCH="2.13")
import wheel  # noqa: E402
import lockstep  # noqa: E402
lockstep.built = sys.modules["lockstep.built"]
from lockstep import command  # noqa: E402


class Tags(unittest.TestCase):
    def test_follow_the_newest_symbols(self):
        self.assertEqual(wheel.platform_tag({"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29)}, "x86_64"),
                         "manylinux_2_34_x86_64")
        self.assertEqual(wheel.platform_tag({"GLIBC": (2, 34), "GLIBCXX": (3, 4, 30)}, "x86_64"),
                         "manylinux_2_35_x86_64")
        self.assertEqual(wheel.platform_tag({"GLIBC": (2, 38), "GLIBCXX": (3, 4, 30)}, "aarch64"),
                         "manylinux_2_38_aarch64")
        self.assertEqual(wheel.platform_tag({}, "x86_64"), "manylinux_2_17_x86_64")

    def test_are_not_guessed_for_symbols_that_are_unknown(self):
        with self.assertRaises(SystemExit):
            wheel.platform_tag({"GLIBC": (2, 34), "GLIBCXX": (3, 4, 99)}, "x86_64")


class Requirements(unittest.TestCase):
    def test_name_one_minor_release(self):
        self.assertEqual(wheel.requirement("2.13.0+cu130"), "torch>=2.13,<2.14")

    def test_stand_in_the_metadata(self):
        text = wheel.metadata("0.1.0", "2.13.0+cpu", ">=3.10", "26.0.1")
        self.assertIn("Requires-Python: >=3.10\n", text)
        self.assertIn("Requires-Dist: torch>=2.13,<2.14\n", text)
        self.assertIn('Requires-Dist: pyarrow==26.*; extra == "parquet"\n', text)
        self.assertNotIn("pyarrow", wheel.metadata("0.1.0", "2.13.0", ">=3.10", None))


class Libraries(unittest.TestCase):
    """Of three small ones: the program needs two, one of which needs the third and the C library."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.build("three", "int three() { return 3; }")
        self.build("two", "#include <cstdlib>\nint three(); int two() { return three() + std::atoi(\"1\"); }",
                   "three")
        self.build("torch_cpu", "int torch() { return 1; }")
        self.program = self.build("program", "int two(); int torch(); int main() { return two() + torch(); }",
                                  "two", "torch_cpu")

    def build(self, name, text, *libraries):
        source = self.folder / f"{name}.cpp"
        source.write_text(text, encoding="utf-8")
        out = self.folder / (name if name == "program" else f"lib{name}.so")
        shared = [] if name == "program" else ["-shared", "-fPIC", f"-Wl,-soname,{out.name}"]
        subprocess.run(["g++", "-o", out, source, *shared, f"-L{self.folder}",
                        f"-Wl,-rpath-link,{self.folder}", *(f"-l{library}" for library in libraries)],
                       check=True)
        return out

    def test_go_along_but_for_the_systems_and_torchs(self):
        places = {f"lib{name}.so": self.folder / f"lib{name}.so" for name in ("two", "three")}
        found = wheel.closure([self.program], places, self.folder / "none")
        self.assertEqual(sorted(found), ["libthree.so", "libtwo.so"])
        with self.assertRaises(SystemExit):
            wheel.closure([self.program], {}, self.folder / "none")

    def test_say_what_they_ask_of_the_c_library(self):
        self.assertGreaterEqual(wheel.versions_needed(self.folder / "libtwo.so")["GLIBC"], (2, 2))
        self.assertNotIn("GLIBC", wheel.versions_needed(self.folder / "libthree.so"))

    def test_are_found_by_the_programs_path(self):
        try:
            wheel.set_rpath(self.program, "$ORIGIN/../lib")
        except SystemExit as missing:
            self.skipTest(str(missing))
        text = subprocess.run(["readelf", "-d", self.program], capture_output=True, text=True).stdout
        self.assertIn("(RPATH)", text)  # not RUNPATH, which libraries of libraries would not have
        self.assertIn("[$ORIGIN/../lib]", text)


class Versions(unittest.TestCase):
    """A program needs new@V2 of a library and defines it itself; the system's library has V1 alone."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        old = "extern \"C\" int old() { return 1; }"
        self.library("system", old + " extern \"C\" int fresh() { return 2; }",
                     "GLIBC_2.1 { old; }; GLIBC_2.9 { fresh; };")
        self.library("carried", "extern \"C\" int old(); extern \"C\" int fresh();"
                     "int both() { return 10 * old() + fresh(); }", "", "-lsystem")
        source = self.folder / "program.cpp"
        source.write_text("int both(); extern \"C\" int fresh() { return 3; }"
                          "int main() { return both(); }")
        self.program = self.folder / "program"
        subprocess.run(["g++", "-o", self.program, source, f"-L{self.folder}", "-lcarried", "-lsystem",
                        f"-Wl,-rpath,{self.folder}", "-Wl,--disable-new-dtags",
                        "-Wl,--export-dynamic-symbol=fresh"], check=True)
        self.library("system", old, "GLIBC_2.1 { old; };")  # an older system

    def library(self, name, text, versions, *more):
        source, script = self.folder / f"{name}.cpp", self.folder / f"{name}.map"
        source.write_text(text)
        script.write_text(versions)
        versioned = [f"-Wl,--version-script={script}"] if versions else []
        subprocess.run(["g++", "-shared", "-fPIC", f"-Wl,-soname,lib{name}.so", "-o",
                        self.folder / f"lib{name}.so", source, f"-L{self.folder}", *versioned, *more],
                       check=True)

    def test_that_the_program_brings_are_not_asked_of_the_system(self):
        carried = self.folder / "libcarried.so"
        before = subprocess.run([self.program], capture_output=True, text=True)
        self.assertIn("GLIBC_2.9' not found", before.stderr)
        self.assertEqual(wheel.versions_needed(carried)["GLIBC"], (2, 9))
        defined, _ = wheel.dynamic_symbols(self.program)
        self.assertEqual(wheel.loosen(carried, defined), {"GLIBC_2.9"})
        self.assertNotEqual(wheel.versions_needed(carried)["GLIBC"], (2, 9))
        after = subprocess.run([self.program], capture_output=True, text=True)
        self.assertEqual((after.returncode, after.stderr), (13, ""))

    def test_that_it_does_not_bring_are(self):
        self.assertEqual(wheel.loosen(self.folder / "libcarried.so", {"other"}), set())


class Archives(unittest.TestCase):
    def test_are_equal_for_equal_content_and_keep_programs_executable(self):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary) / "content"
            (folder / "lockstep" / "bin").mkdir(parents=True)
            (folder / "lockstep-0.1.0.dist-info").mkdir()
            program = folder / "lockstep" / "bin" / "lockstep"
            program.write_text("x")
            program.chmod(0o755)
            one, two = pathlib.Path(temporary) / "1.whl", pathlib.Path(temporary) / "2.whl"
            wheel.write_wheel(folder, one)
            (folder / "lockstep-0.1.0.dist-info" / "RECORD").unlink()
            os.utime(program, (1, 1))
            wheel.write_wheel(folder, two)
            self.assertEqual(one.read_bytes(), two.read_bytes())
            with zipfile.ZipFile(one) as read:
                self.assertEqual(read.getinfo("lockstep/bin/lockstep").external_attr >> 16, 0o100755)
                record = read.read("lockstep-0.1.0.dist-info/RECORD").decode()
            self.assertIn("lockstep/bin/lockstep,sha256=LXEWQrcmsEQBYnyp-6wy9chTD7GQPMTbAiWHF5IaSIE,1\n",
                          record)
            self.assertTrue(record.endswith("lockstep-0.1.0.dist-info/RECORD,,\n"))


class Command(unittest.TestCase):
    """What the command says and starts beside a torch of files alone."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.path = list(sys.path)
        self.addCleanup(setattr, sys, "path", self.path)
        self.addCleanup(os.environ.pop, "LD_LIBRARY_PATH", None)
        self.started = []
        self.addCleanup(setattr, os, "execv", os.execv)
        os.execv = lambda program, words: self.started.append((program, words))

    def put_torch(self, version, library=True):
        torch = self.folder / "torch"
        (torch / "lib").mkdir(parents=True)
        (torch / "__init__.py").write_text("raise SystemExit('torch was imported')")
        (torch / "version.py").write_text(f"__version__ = '{version}'\ndebug = False\n")
        if library:
            (torch / "lib" / "libtorch_cpu.so").write_text("")
        return torch

    def run_command(self):
        sys.path.insert(0, str(self.folder))
        importlib.invalidate_caches()
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), contextlib.suppress(SystemExit):
            command.main()
        return errors.getvalue()

    def test_starts_the_program_beside_torch(self):
        torch = self.put_torch("2.13.1+cpu")
        self.run_command()
        self.assertEqual(self.started[0][0], command.PROGRAM)
        self.assertEqual(self.started[0][1][0], "lockstep")
        # This torch is not beside the package, which the RPATH would find.
        self.assertEqual(os.environ["LD_LIBRARY_PATH"].split(":")[0], str(torch / "lib"))

    def test_names_a_torch_of_another_release(self):
        self.put_torch("2.12.0")
        said = self.run_command()
        self.assertEqual(self.started, [])
        self.assertIn("error: torch 2.12.0 in ", said)
        self.assertIn("lockstep 0.1.0 was built for torch 2.13\n  try: ", said)

    def test_names_half_a_torch(self):
        self.put_torch("2.13.0", library=False)
        self.assertIn("is not a whole torch", self.run_command())

    def test_says_when_there_is_no_torch(self):
        finder, importlib.util.find_spec = importlib.util.find_spec, lambda name: None
        self.addCleanup(setattr, importlib.util, "find_spec", finder)
        self.assertIn("error: no torch for ", self.run_command())


if __name__ == "__main__":
    unittest.main()
