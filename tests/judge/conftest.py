"""Tests of `precis judge` run the command line as those of the other commands do."""

from tests.cli.conftest import pairs as pairs
from tests.cli.conftest import precis as precis
