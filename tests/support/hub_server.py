#!/usr/bin/env python3
"""archive_server.py as a Hugging Face hub, for tests: the same words on the command line.

FOLDER/OWNER/NAME holds a model's files and COMMIT, the hash that every revision but "absent" stands
for; with a file TOKEN only who sends that token may read it. *.safetensors are kept elsewhere, as
large files are: they are redirected to /cdn/..., with X-Linked-Etag (their SHA-256) and
X-Linked-Size; faults for them go by the name "cdn/OWNER/NAME/FILE".
"""
import hashlib
import re

import archive_server


class Handler(archive_server.Handler):
    def refuse(self, status, code, headers=None):
        fault = {"log": self.server.log}
        self.answer(status, {"X-Error-Code": code, "Content-Length": "0", **(headers or {})}, fault)

    def do_HEAD(self):
        self.resolve()

    def do_GET(self):
        if self.path.startswith("/cdn/"):
            return super().do_GET()
        self.resolve()

    def resolve(self):
        if self.server.faults.get("down"):
            return self.refuse(503, "Down")
        match = re.fullmatch(r"/(.+)/resolve/([^/]+)/(.+)", self.path)
        model = self.server.folder / match[1] if match else None
        if model is None or not (model / "COMMIT").is_file():
            return self.refuse(404, "RepoNotFound")
        token = model / "TOKEN"
        if token.is_file() and self.headers.get("Authorization") != f"Bearer {token.read_text()}":
            return self.refuse(401, "GatedRepo")
        if match[2] == "absent":
            return self.refuse(404, "RevisionNotFound")
        commit = {"X-Repo-Commit": (model / "COMMIT").read_text()}
        path = model / match[3]
        if not path.is_file():
            return self.refuse(404, "EntryNotFound", commit)
        body = path.read_bytes()
        fault = {"log": self.server.log}
        if path.suffix == ".safetensors":
            where = f"http://{self.headers['Host']}/cdn/{match[1]}/{match[3]}"
            return self.answer(302, commit | {
                "Location": where, "X-Linked-Etag": f'"{hashlib.sha256(body).hexdigest()}"',
                "X-Linked-Size": str(len(body)), "Content-Length": "0"}, fault)
        etag = f'W/"{hashlib.sha1(body).hexdigest()}"'
        self.answer(200, commit | {"ETag": etag, "Content-Length": str(len(body))}, fault)
        if self.command == "GET":
            self.wfile.write(body)


if __name__ == "__main__":
    archive_server.main(Handler)
