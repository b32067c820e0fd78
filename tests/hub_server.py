"""A server that speaks the used part of the hub's protocol: info, tree, resolve with ranges, LFS and commits."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlparse

SMALL = 1 << 14  # bytes up to which a file is no LFS file


class Hub(ThreadingHTTPServer):
    """``repos[name][path]`` are the files, of models ``repos["models/name"][path]``; the rest is what a test wants to
    go wrong, and what was seen."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repos: dict[str, dict[str, bytes]] = {}
        self.lfs: dict[str, bytes] = {}  # what was uploaded
        self.token = ""  # asked for if set
        self.spoil = False  # send other bytes than were promised
        self.stall_after: int | None = None  # bytes of a body after which nothing more is sent
        self.stalled = threading.Event()
        self.declared: int | None = None  # a size that is told instead of the true one
        self.sent: list[tuple[int, int]] = []  # (from, bytes) of every body of a file
        self.asked: list[str] = []
        self.messages: list[str] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def commit(self, repo: str) -> str:
        files = self.repos[repo]
        listed = sorted((path, hashlib.sha1(content).hexdigest()) for path, content in files.items())
        return hashlib.sha1(repr(listed).encode()).hexdigest()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is none of our business."""


def sums(content: bytes) -> tuple[str, str]:
    """SHA-256, and git's own."""
    return hashlib.sha256(content).hexdigest(), hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *words: Any) -> None:
        pass

    # --- asked for --------------------------------------------------------------------------------------------------
    def do_HEAD(self) -> None:
        self._begin()

    def do_GET(self) -> None:
        self._begin()

    def do_POST(self) -> None:
        self._begin()

    def do_PUT(self) -> None:
        self._begin()

    def _begin(self) -> None:
        path = unquote(urlparse(self.path).path)
        self.server.asked.append(f"{self.command} {path}")
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        given = self.headers.get("Authorization", "")
        if self.server.token and given != f"Bearer {self.server.token}" and not path.startswith("/lfs/"):
            return self._json({"error": "Invalid credentials"}, 401)
        parts = path.strip("/").split("/")
        if path.startswith("/lfs/"):
            return self._upload(parts[-1])
        if path == "/api/repos/create":
            return self._create()
        if path == "/api/validate-yaml":
            return self._json({"errors": [], "warnings": []})
        if parts[:2] == ["api", "datasets"]:
            return self._api("/".join(parts[2:4]), parts[4:])
        if parts[:2] == ["api", "models"]:
            return self._api("/".join(parts[1:4]), parts[4:])
        if parts[0] == "datasets" and "resolve" in parts:
            return self._resolve("/".join(parts[1:3]), parts[4], "/".join(parts[5:]))
        if parts[2:3] == ["resolve"]:
            return self._resolve("/".join(["models", *parts[:2]]), parts[3], "/".join(parts[4:]))
        if path.endswith(".git/info/lfs/objects/batch"):
            return self._batch()
        self._json({"error": "not found"}, 404)

    def _json(self, value: Any, status: int = 200, **headers: str) -> None:
        text = json.dumps(value).encode()
        self.send_response(status)
        for key, word in {"Content-Type": "application/json", "Content-Length": str(len(text)), **headers}.items():
            self.send_header(key.replace("_", "-"), word)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    # --- reading ----------------------------------------------------------------------------------------------------
    def _api(self, repo: str, rest: list[str]) -> None:
        if repo not in self.server.repos:
            return self._json({"error": "Repository not found"}, 404, X_Error_Code="RepoNotFound")
        commit = self.server.commit(repo)
        if rest[:1] in (["revision"], ["tree"]) and rest[1] not in ("main", commit):
            return self._json({"error": "Invalid rev"}, 404, X_Error_Code="RevisionNotFound")
        if rest[:1] == ["tree"]:
            return self._json([self._entry(p, c) for p, c in sorted(self.server.repos[repo].items())])
        if rest[:1] == ["preupload"]:
            return self._json({"files": [self._mode(f) for f in json.loads(self.body)["files"]]})
        if rest[:1] == ["commit"]:
            return self._commit(repo)
        siblings = [{"rfilename": p} for p in self.server.repos[repo]]
        self._json(
            {
                "id": repo.removeprefix("models/"),
                "sha": commit,
                "siblings": siblings,
                "private": False,
                "tags": [],
                "downloads": 0,
            }
        )

    def _entry(self, path: str, content: bytes) -> dict[str, Any]:
        size = self.server.declared or len(content)
        entry: dict[str, Any] = {"type": "file", "path": path, "size": size, "oid": sums(content)[1]}
        if len(content) > SMALL:
            entry["lfs"] = {"oid": sums(content)[0], "size": size, "pointerSize": 134}
        return entry

    def _resolve(self, repo: str, revision: str, path: str) -> None:
        content = self.server.repos.get(repo, {}).get(path)
        if content is None:
            code = "EntryNotFound" if repo in self.server.repos else "RepoNotFound"
            return self._json({"error": "not found"}, 404, X_Error_Code=code)
        large = len(content) > SMALL
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        self.send_response(206 if start else 200)
        self.send_header("ETag", f'"{sums(content)[0 if large else 1]}"')
        self.send_header("X-Repo-Commit", self.server.commit(repo))
        self.send_header("X-Linked-Size", str(len(content)))
        self.send_header("X-Linked-Etag", f'"{sums(content)[0 if large else 1]}"')
        self.send_header("Accept-Ranges", "bytes")
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        if self.command == "GET":
            self._send(content, start)

    def _send(self, content: bytes, start: int) -> None:
        body = content[start:]
        if self.server.spoil:
            body = bytes(len(body))
        limit = self.server.stall_after
        self.server.sent.append((start, len(body) if limit is None else min(limit, len(body))))
        if limit is not None:
            self.wfile.write(body[:limit])
            self.wfile.flush()
            self.server.stalled.set()
            threading.Event().wait(60)  # until the client is gone, or the test
            return
        self.wfile.write(body)

    # --- writing ----------------------------------------------------------------------------------------------------
    def _create(self) -> None:
        asked = json.loads(self.body)
        kind = None if asked.get("type") == "dataset" else "models"
        repo = "/".join(filter(None, (kind, asked.get("organization"), asked["name"])))
        if repo in self.server.repos:
            return self._json({"error": "You already created this dataset repo", "url": self._page(repo)}, 409)
        self.server.repos[repo] = {}
        self._json({"url": self._page(repo), "name": repo})

    def _page(self, repo: str) -> str:
        path = repo.removeprefix("models/") if repo.startswith("models/") else f"datasets/{repo}"
        return f"{self.server.address}/{path}"

    def _mode(self, file: dict[str, Any]) -> dict[str, Any]:
        return {"path": file["path"], "uploadMode": "lfs" if file["size"] > SMALL else "regular", "shouldIgnore": False}

    def _batch(self) -> None:
        objects = []
        for wanted in json.loads(self.body)["objects"]:
            upload = {"href": f"{self.server.address}/lfs/{wanted['oid']}", "header": {}}
            objects.append(wanted | ({} if wanted["oid"] in self.server.lfs else {"actions": {"upload": upload}}))
        self._json({"transfer": "basic", "objects": objects})

    def _upload(self, oid: str) -> None:
        if sums(self.body)[0] != oid:
            return self._json({"error": "checksum"}, 400)
        self.server.lfs[oid] = self.body
        self._json({})

    def _commit(self, repo: str) -> None:
        for line in self.body.splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "header":
                self.server.messages.append(value["summary"])
            elif entry["key"] == "file":
                self.server.repos[repo][value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                self.server.repos[repo][value["path"]] = self.server.lfs[value["oid"]]
        commit = self.server.commit(repo)
        url = f"{self._page(repo)}/commit/{commit}"
        self._json({"success": True, "commitOid": commit, "commitUrl": url})
