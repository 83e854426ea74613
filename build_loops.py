"""Compile the loops in C while trueup is built; without a compiler the wheel holds Python alone."""

from __future__ import annotations

import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.errors import BaseError, CompileError, LinkError

KERNELS = Path("src/trueup/_kernels")
STABLE_ABI = "0x030B0000"  # of Python 3.11, which has the buffer protocol
OF_GCC = "-g0 -O3 -ffp-contract=fast -fno-math-errno -fno-trapping-math -fopenmp-simd"  # NaN stays


class BuildLoops(BuildHookInterface):
    """Hatchling's hook."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        self.folder = tempfile.TemporaryDirectory()
        try:
            built = self.compile(Path(self.folder.name))
        except (BaseError, CompileError, LinkError) as error:
            self.app.display_warning(f"trueup's loops were not compiled, numpy's are used: {error}")
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data |= {"pure_python": False, "tag": f"cp311-abi3-{platform}"}
        if version == "editable":
            target = Path(self.root, KERNELS, built.name)
            Path(shutil.copy(built, f"{target}.new")).replace(target)  # it may be in use
        else:
            build_data["force_include"][str(built)] = f"trueup/_kernels/{built.name}"

    def compile(self, folder: Path) -> Path:
        """Return the compiled extension."""
        extension = Extension(
            "loops",
            sorted(map(str, Path(self.root, KERNELS).glob("*.c"))),
            define_macros=[("Py_LIMITED_API", STABLE_ABI)],
            py_limited_api=True,
            extra_compile_args=["/std:c11"] if sys.platform == "win32" else OF_GCC.split(),
        )
        command = Distribution({"ext_modules": [extension]}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(folder), str(folder / "objects")
        command.ensure_finalized()
        command.run()
        return Path(command.get_outputs()[0])

    def finalize(self, *_: Any) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()
