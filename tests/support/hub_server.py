#!/usr/bin/env python3
"""archive_server.py as a Hugging Face hub, for tests: the same words on the command line.

FOLDER/OWNER/NAME holds a model's files and FOLDER/datasets/OWNER/NAME a data set's, with

    COMMIT      the hash that every revision but "absent" and the branches stands for
    TOKEN       only who sends that token may read it; GATED beside it: everyone may see it exists
    BRANCHES/   folders such as refs/convert/parquet, each with files and COMMIT of its own
    CARD.json   the metadata of its card (README.md)
    TREE        the answer about the revision names no files; they are asked for page by page

The API answers /api/(models|datasets)/OWNER/NAME/revision/REVISION with files and card, and
.../tree/REVISION in pages of 2. Files of the endings kLarge are kept
elsewhere, as large files are: they are redirected to /cdn/..., with X-Linked-Etag (their SHA-256)
and X-Linked-Size; faults for them go by the name "cdn/OWNER/NAME/FILE", those of the API by its
path.
"""
import hashlib
import json
import re
import urllib.parse

import archive_server

kOwn = {"COMMIT", "TOKEN", "GATED", "CARD.json", "TREE"}
kLarge = {".safetensors", ".parquet", ".zip"}
kPage = 2


def files_of(root):
    names = (path.relative_to(root).as_posix() for path in sorted(root.rglob("*"))
             if path.is_file())
    return [name for name in names if name not in kOwn and not name.startswith("BRANCHES/")]


class Handler(archive_server.Handler):
    def refuse(self, status, code, headers=None):
        fault = {"log": self.server.log}
        self.answer(status, {"X-Error-Code": code, "Content-Length": "0", **(headers or {})}, fault)

    def locate(self, name):
        return super().locate(name.removeprefix("cdn/"))

    def do_HEAD(self):
        self.resolve()

    def do_GET(self):
        if self.path.startswith("/cdn/"):
            return super().do_GET()
        if self.path.startswith("/api/"):
            return self.describe()
        self.resolve()

    def repository(self, name, revision):
        """Returns the folder of a revision, or None after it has refused."""
        root = self.server.folder / name
        if self.server.faults.get("down"):
            return self.refuse(503, "Down")
        if not (root / "COMMIT").is_file():
            return self.refuse(404, "RepoNotFound")
        token = root / "TOKEN"
        if token.is_file() and self.headers.get("Authorization") != f"Bearer {token.read_text()}":
            gated = (root / "GATED").exists() or not name.startswith("datasets/")
            return self.refuse(401, "GatedRepo" if gated else "RepoNotFound")
        branch = root / "BRANCHES" / revision
        if (branch / "COMMIT").is_file():
            return branch
        for other in root.glob("BRANCHES/**/COMMIT"):
            if other.read_text() == revision:
                return other.parent
        if revision == "absent" or revision.startswith("refs/"):
            return self.refuse(404, "RevisionNotFound")
        return root

    def describe(self):
        path, _, query = self.path.partition("?")
        queue = self.server.faults.get(path.lstrip("/"), [])
        if queue:
            return self.refuse(queue.pop(0)["status"], "Fault")
        match = re.fullmatch(r"/api/(models|datasets)/(.+)/(revision|tree)/([^/]+)", path)
        if not match:
            return self.refuse(404, "NotFound")
        name = match[2] if match[1] == "models" else "datasets/" + match[2]
        root = self.repository(name, urllib.parse.unquote(match[4]))
        if root is None:
            return
        headers, files = {}, files_of(root)
        if match[3] == "revision":
            shown = [] if (root / "TREE").exists() else files
            body = {"id": match[2], "sha": (root / "COMMIT").read_text(),
                    "siblings": [{"rfilename": file} for file in shown]}
            if (root / "CARD.json").is_file():
                body["cardData"] = json.loads((root / "CARD.json").read_text())
        else:
            begin = int(urllib.parse.parse_qs(query).get("cursor", ["0"])[0])
            page = files[begin:begin + kPage]
            body = [{"type": "file", "path": file, "oid": "0" * 40,
                     "size": (root / file).stat().st_size} for file in page]
            if begin + kPage < len(files):
                there = f"http://{self.headers['Host']}{path}?recursive=true&cursor={begin + kPage}"
                headers["Link"] = f'<{there}>; rel="next"'
        text = json.dumps(body).encode()
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(text))}
        self.answer(200, headers, {"log": self.server.log})
        self.wfile.write(text)

    def resolve(self):
        match = re.fullmatch(r"/(.+)/resolve/([^/]+)/(.+)", self.path)
        if not match:
            return self.refuse(404, "RepoNotFound")
        root = self.repository(match[1], urllib.parse.unquote(match[2]))
        if root is None:
            return
        commit = {"X-Repo-Commit": (root / "COMMIT").read_text()}
        path = root / urllib.parse.unquote(match[3])
        if not path.is_file():
            return self.refuse(404, "EntryNotFound", commit)
        body = path.read_bytes()
        fault = {"log": self.server.log}
        if path.suffix in kLarge:
            where = urllib.parse.quote(path.relative_to(self.server.folder).as_posix())
            return self.answer(302, commit | {
                "Location": f"http://{self.headers['Host']}/cdn/{where}",
                "X-Linked-Etag": f'"{hashlib.sha256(body).hexdigest()}"',
                "X-Linked-Size": str(len(body)), "Content-Length": "0"}, fault)
        etag = f'W/"{hashlib.sha1(body).hexdigest()}"'
        self.answer(200, commit | {"ETag": etag, "Content-Length": str(len(body))}, fault)
        if self.command == "GET":
            self.wfile.write(body)


if __name__ == "__main__":
    archive_server.main(Handler)
