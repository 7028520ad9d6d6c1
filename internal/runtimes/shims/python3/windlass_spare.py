"""Makes a spare instance, which has loaded all but the code, one of a function's."""

import asyncio  # noqa: F401 - loaded ahead, for handlers that need it
import base64
import json
import os
import time

from windlass_load import Failure


def become(client, stop):
    """Waits for the assignment and does what it says; False if stop comes first."""
    # Where code may be written is known to who made the instance.
    task_root = os.environ.get("LAMBDA_TASK_ROOT")
    if not task_root:
        raise Failure("Runtime.BadAssignment", "LAMBDA_TASK_ROOT is not set; it must be a folder that can be written")
    answer = client.wait("/windlass/v1/assignment", stop)
    if answer is None:
        return False
    body = answer.read()
    if answer.status != 200:
        raise Failure("Runtime.BadAssignment", f"The assignment was refused with {answer.status}: {body.decode(errors='replace')}")
    assignment = json.loads(body)
    del os.environ["WINDLASS_SPARE"]
    for variable in assignment["variables"]:
        os.environ[variable["name"]] = variable["value"]
    os.environ["LAMBDA_TASK_ROOT"] = task_root
    time.tzset()
    try:
        os.makedirs(task_root, exist_ok=True)
        for file in assignment["files"]:
            write(task_root, file["path"], base64.b64decode(file["content"]))
        os.chdir(task_root)
    except OSError as e:
        raise Failure("Runtime.BadAssignment", f"The code cannot be written below {task_root}: {e}") from e
    return True


def write(task_root, path, content):
    """Writes a file below the task root."""
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
        raise Failure("Runtime.BadAssignment", f"The file {path!r} is not below the folder of the code")
    name = os.path.join(task_root, *parts)
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "wb") as f:
        f.write(content)
