"""Loads a handler."""

import importlib


class Failure(Exception):
    """Something failed on this side of the handler; kind is its type in reports."""

    def __init__(self, kind, message, frames_of=None):
        super().__init__(message)
        self.kind = kind
        # The exception whose stack shows what is wrong.
        self.frames_of = frames_of


def load(module, name):
    """Returns the handler, or raises a Failure."""
    try:
        loaded = importlib.import_module(module)
    except BaseException as e:  # a module may also call sys.exit
        message = f"Unable to import module '{module}': {type(e).__name__}: {e}"
        raise Failure("Runtime.ImportModuleError", message, e) from e
    handler = getattr(loaded, name, None)
    if not callable(handler):
        what = "missing from" if handler is None else "not callable in"
        raise Failure("Runtime.HandlerNotFound", f"Handler '{name}' is {what} module '{module}' ({loaded.__file__})")
    return handler
