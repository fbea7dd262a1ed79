"""Whoever changes something asks from a page of this server, not from that of another site."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import HTTPException, Request


def require_same_site(request: Request) -> None:
    """Raise HTTPException 403 where the browser says otherwise; programs say nothing.

    A browser sends the cookie of the log-in along whoever asks, so it alone is no consent.
    """
    if site := request.headers.get("sec-fetch-site"):
        from_here = site == "same-origin"
    else:
        origin = request.headers.get("origin")
        from_here = origin is None or urlsplit(origin).netloc == request.headers.get("host")
    if not from_here:
        raise HTTPException(403, "This is changed from the page Experiments only.")
