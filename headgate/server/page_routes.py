"""The web page: one document for every view, with its own style sheet and modules."""

from pathlib import Path

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

FOLDER = Path(__file__).parent / "page"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

VIEWS = (
    "/", "/page/queries", "/page/queries/{name}", "/page/network", "/page/policy", "/page/what-if",
    "/page/changes", "/page/add",
)  # fmt: skip
"""The paths of the views. Below them, the modules decide what is shown."""

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'self'; form-action 'none';"
    " frame-ancestors 'none'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def add_page(app: FastAPI) -> None:
    """Add the page to an application: its views, and the files that they load."""
    files = {file.name: file for file in FOLDER.iterdir() if file.suffix in TYPES}
    document = (FOLDER / "index.html").read_text()

    def view(request: Request) -> Response:
        # All links are relative to the root, so that the page works behind a base path.
        root = "../" * (request.url.path.count("/") - 1) or "./"
        text = document.replace("{root}", root)
        return Response(text, media_type="text/html", headers=HEADERS)

    for path in VIEWS:
        app.add_api_route(path, view, methods=["GET"], include_in_schema=False)

    @app.get("/page/files/{name}", include_in_schema=False)
    def file(name: str) -> Response:
        if name not in files:
            raise HTTPException(404, "not found")
        content, kind = files[name].read_bytes(), TYPES[files[name].suffix]
        return Response(content, media_type=kind, headers=HEADERS)
