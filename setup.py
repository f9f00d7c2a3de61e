# SPDX-License-Identifier: MIT
"""pip's way to the Makefile: `make python` builds the extension, the library, the command and the page; this file copies what it
made into the package. Everything else stands in pyproject.toml."""

import os
import re
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = os.path.dirname(os.path.abspath(__file__))


def version():
    with open(os.path.join(HERE, "include", "tare", "tare.h"), encoding="utf-8") as header:
        return re.search(r'#define TARE_VERSION "(.+)"', header.read()).group(1)


class MakePython(build_ext):
    """Builds with make, then takes what is not Python source out of the package tree that make leaves."""

    def run(self):
        tag = sys.implementation.cache_tag
        subprocess.check_call(["make", "--no-print-directory", "-j%d" % (os.cpu_count() or 1), "python", "PYTHON=" + sys.executable], cwd=HERE)
        made = os.path.join(HERE, "build", "python", tag, "tare")
        target = os.path.join(HERE if self.inplace else self.build_lib, "python" if self.inplace else "", "tare")
        for name in sorted(os.listdir(made)):
            if name.endswith((".so", ".html")) or name in ("_lib", "_bin"):
                self.take(os.path.join(made, name), os.path.join(target, name))

    @staticmethod
    def take(source, target):
        if os.path.isdir(source):
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(source, target)


setup(
    version=version(),
    ext_modules=[Extension("tare._tare", [])],
    package_data={"tare": ["py.typed", "*.pyi"]},
    cmdclass={"build_ext": MakePython},
)
