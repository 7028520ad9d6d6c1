"""Loads the handler that the environment names."""

import importlib
import os
import sys


class Failure(Exception):
    """Something failed on this side of the handler; kind is its type in reports."""

    def __init__(self, kind, message, frames_of=None):
        super().__init__(message)
        self.kind = kind
        # The exception whose stack shows what is wrong.
        self.frames_of = frames_of


def text_of(e):
    """What an exception says, also if its own code cannot tell."""
    try:
        return str(e)
    except Exception:
        return object.__repr__(e)


def load():
    """Returns the handler, or raises a Failure."""
    task_root = os.environ.get("LAMBDA_TASK_ROOT")
    if not task_root:
        raise Failure("Runtime.ImportModuleError", "LAMBDA_TASK_ROOT is not set; it must be the folder of the code")
    module, name = split(os.environ.get("_HANDLER", ""))
    sys.path[0] = task_root  # was the folder of this file
    try:
        loaded = importlib.import_module(module)
    except BaseException as e:  # a module may also call sys.exit
        message = f"Unable to import module '{module}': {type(e).__name__}: {text_of(e)}"
        raise Failure("Runtime.ImportModuleError", message, e) from e
    handler = getattr(loaded, name, None)
    if not callable(handler):
        what = "missing from" if handler is None else "not callable in"
        # A module of Python with the same name, such as time, has no file.
        file = getattr(loaded, "__file__", None) or "built in"
        raise Failure("Runtime.HandlerNotFound", f"Handler '{name}' is {what} module '{module}' ({file})")
    return handler


def split(handler):
    """Parts module and function at the last dot; a module's folders end with dots or slashes."""
    module, _, name = handler.rpartition(".")
    module = module.replace("/", ".")
    if not name or not all(module.split(".")):
        message = f"_HANDLER is {handler!r}; it must be module.function, such as app.handler"
        raise Failure("Runtime.MalformedHandlerName", message)
    return module, name
