"""The version, read from the installed package, so that it is written down once."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("offbook")
except PackageNotFoundError:  # run from a source tree that was never installed
    VERSION = "0+unknown"
