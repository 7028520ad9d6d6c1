import os


def handler(event, context):
    if "fail" in event:
        raise ValueError(event["fail"])
    with open("word.txt") as f:
        word = f.read()
    return {"event": event, "greeting": os.environ.get("GREETING"), "spare": os.environ.get("WINDLASS_SPARE"), "word": word}
