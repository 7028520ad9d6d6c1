"""Scales pictures down: POST a JPEG or PNG, get a thumbnail in the same format.

A WSGI application (PEP 3333), as Flask's and Django's are, without a framework.
"""

import io
from urllib.parse import parse_qs

from PIL import Image, ImageOps, UnidentifiedImageError

FORMATS = ("JPEG", "PNG")
WIDEST = 2000
# A small file can unfold into a picture that fills the memory.
MOST_PIXELS = 50_000_000


class BadRequest(Exception):
    """Says what is wrong with a request."""


def application(environ, start_response):
    if environ["REQUEST_METHOD"] != "POST":
        return answer(start_response, "405 Method Not Allowed", "POST a picture.\n", ("Allow", "POST"))
    try:
        width = width_of(environ["QUERY_STRING"])
        kind, picture = thumbnail(environ["wsgi.input"].read(), width)
    except BadRequest as e:
        return answer(start_response, "400 Bad Request", f"{e}\n")
    start_response("200 OK", [("Content-Type", kind), ("Content-Length", str(len(picture)))])
    return [picture]


def answer(start_response, status, text, *headers):
    start_response(status, [("Content-Type", "text/plain; charset=utf-8"), *headers])
    return [text.encode()]


def width_of(query):
    text = parse_qs(query).get("width", ["200"])[0]
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= WIDEST:
        raise BadRequest(f"width is {text!r}: give a whole number from 1 to {WIDEST}")
    return int(text)


def thumbnail(data, width):
    """Returns the content type and the bytes of a picture at most width wide."""
    if not data:
        raise BadRequest("the body is empty: send a JPEG or PNG file, as with curl --data-binary @picture.jpg")
    try:
        picture = Image.open(io.BytesIO(data), formats=FORMATS)
        if picture.width * picture.height > MOST_PIXELS:
            raise BadRequest(f"the picture has {picture.width} x {picture.height} pixels: send one of at most {MOST_PIXELS}")
        # A phone's photo is often an MPO: a JPEG with more pictures behind the first.
        form = "PNG" if picture.format == "PNG" else "JPEG"
        ImageOps.exif_transpose(picture, in_place=True)
        # The bound on the height is out of reach: only the width counts.
        picture.thumbnail((width, picture.height))
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as e:
        raise BadRequest(f"the body is not a JPEG or PNG that can be read: {e}") from e
    out = io.BytesIO()
    picture.save(out, form, quality=85, optimize=True)
    return Image.MIME[form], out.getvalue()
