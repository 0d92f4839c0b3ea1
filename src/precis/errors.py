"""The two ways a run ends early, each said in one line."""


class UserError(ValueError):
    """Something the user can mend: the message names what, where and how. The command line exits with 2."""


class RunError(RuntimeError):
    """A run that could not go on (divergence, a full disk). The command line exits with 1."""


class DivergedError(RunError):
    """Training that left no usable model: its loss, gradient or weights were not finite."""
