"""All that pyproject.toml cannot say: the OpenClaw plugin is built beside the package and shipped inside it.

It goes to `offbook/hosts/openclaw/plugin`, where `offbook openclaw setup` looks first, so that a host can load it from
an installed wheel as from a checkout.
"""

from __future__ import annotations

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PLUGIN = Path("plugins", "openclaw")
SHIPPED = ("openclaw.plugin.json", "package.json", "README.md", "LICENSE", "dist/*.js", "memory-slot/*.js*")
"""As `files` of its package.json. What it is built from and its tests stay behind."""
NEEDED = ("openclaw.plugin.json", "dist/index.js", "memory-slot/openclaw.plugin.json")
"""Without one of them a host would refuse its whole configuration."""
INSIDE = Path("offbook", "hosts", "openclaw", "plugin")


class BuildWithPlugin(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:  # the package stays in its checkout, where the plugin is found beside it
            return
        missing = [name for name in NEEDED if not (PLUGIN / name).is_file()]
        if missing:
            raise FileNotFoundError(f"{PLUGIN} lacks {', '.join(missing)}: run `make plugin` first")
        for source, target in self._plugin_files():
            self.mkpath(str(target.parent))
            self.copy_file(str(source), str(target), preserve_mode=False)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        inside = [] if self.editable_mode else [str(target) for _, target in self._plugin_files()]
        return [*super().get_outputs(include_bytecode), *inside]

    def _plugin_files(self) -> list[tuple[Path, Path]]:
        found = sorted(path for pattern in SHIPPED for path in PLUGIN.glob(pattern))
        return [(path, Path(self.build_lib, INSIDE, path.relative_to(PLUGIN))) for path in found]


setup(cmdclass={"build_py": BuildWithPlugin})
