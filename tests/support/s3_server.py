#!/usr/bin/env python3
"""A local server that speaks as much of S3 as lockstep uses, for tests, with the faults of real ones.

    s3_server.py FOLDER [--faults FILE] [--log FILE]

Serves the buckets that are folders of FOLDER, path-style, on 127.0.0.1, any free port; prints the
port, then serves until its standard input ends. It checks every signature itself (Signature
Version 4, computed here from the published description alone, and at start against the example that
Amazon publishes), the hash of every body, and refuses all else as S3 does. The only credentials:
key "AKIDEXAMPLE", secret "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", token "tok/en+==" or none.

FILE is JSON and read at every request, so a test may change it: KEY (bucket/name, or "*") to a list
of faults, one a request of that key with that method, used up in turn (a fault's "times": so many):

    {"method": "PUT"}           only requests of this method use it up
    {"status": 403, "code": "ExpiredToken"}   that answer
    {"cut": N}                  the line is cut after N bytes of the answer's body, or of the request's
    {"damage": true}            a byte of the stored object or of the answer is another one
    {"slow": S}                 S seconds before each 64 kB

Lists have three keys a page. The log has a line a request: METHOD KEY?QUERY STATUS.
"""
import argparse
import base64
import hashlib
import hmac
import http.server
import json
import pathlib
import sys
import threading
import time
import urllib.parse
import uuid
from xml.sax.saxutils import escape

KEY, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "tok/en+=="
SLICE = 1 << 16


def signature(secret, method, path, query, headers, signed, payload):
    """The signature of a request. headers: lower-case names; signed: their names, sorted."""
    date, scope_date = headers["x-amz-date"], headers["x-amz-date"][:8]
    region = headers["_region"]
    canonical = "\n".join([
        method, path, query,
        "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in signed),
        ";".join(signed), payload])
    text = "\n".join(["AWS4-HMAC-SHA256", date, f"{scope_date}/{region}/s3/aws4_request",
                      hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in (scope_date, region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def check_published_example():
    """'Example: GET Object' of Amazon's 'Signature Calculations for the Authorization Header'."""
    empty = hashlib.sha256(b"").hexdigest()
    headers = {"host": "examplebucket.s3.amazonaws.com", "range": "bytes=0-9",
               "x-amz-content-sha256": empty, "x-amz-date": "20130524T000000Z",
               "_region": "us-east-1"}
    found = signature("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "GET", "/test.txt", "", headers,
                      ["host", "range", "x-amz-content-sha256", "x-amz-date"], empty)
    assert found == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41", found


class Refusal(Exception):
    def __init__(self, status, code, message="", extra=""):
        super().__init__(code)
        self.status, self.code, self.message, self.extra = status, code, message, extra


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", headers=None, fault=None):
        fault = fault or {}
        with self.server.lock, open(self.server.log, "a", encoding="utf-8") as log:
            log.write(f"{self.command} {self.path.lstrip('/')} {status}\n")
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD" or status == 204:
            return
        stop = min(fault.get("cut", len(body)), len(body))
        for at in range(0, stop, SLICE):
            time.sleep(fault.get("slow", 0))
            self.wfile.write(body[at:min(at + SLICE, stop)])
        self.wfile.flush()
        if stop < len(body):
            self.close_connection = True

    def fault_of(self, key):
        with self.server.lock:
            faults = json.loads(self.server.faults.read_text())
            for name in (key, "*"):
                for fault in faults.get(name, []):
                    if fault.get("method", self.command) != self.command:
                        continue
                    fault["times"] = fault.get("times", 1) - 1
                    if fault["times"] <= 0:
                        faults[name].remove(fault)
                    self.server.faults.write_text(json.dumps(faults))
                    return fault
        return {}

    def check_signature(self, path, query, body):
        words = self.headers.get("Authorization", "")
        if not words.startswith("AWS4-HMAC-SHA256 "):
            raise Refusal(403, "AccessDenied", "no signature")
        parts = dict(p.strip().split("=", 1) for p in words.split(" ", 1)[1].split(","))
        key, date, region, service, _ = parts["Credential"].split("/")
        headers = {name.lower(): value for name, value in self.headers.items()}
        headers["_region"] = region
        signed = parts["SignedHeaders"].split(";")
        must = [n for n in headers if n == "host" or n.startswith("x-amz-")]
        if key != KEY:
            raise Refusal(403, "InvalidAccessKeyId", "no such key")
        if region != "us-east-1":
            raise Refusal(400, "AuthorizationHeaderMalformed", "wrong region",
                          "<Region>us-east-1</Region>")
        if service != "s3" or not headers["x-amz-date"].startswith(date):
            raise Refusal(403, "SignatureDoesNotMatch", "scope")
        if signed != sorted(signed) or any(n not in signed for n in must):
            raise Refusal(403, "AccessDenied", f"not signed: {must} {signed}")
        if headers.get("x-amz-security-token", TOKEN) != TOKEN:
            raise Refusal(400, "ExpiredToken", "The provided token has expired.")
        sent = headers["x-amz-content-sha256"]
        found = signature(SECRET, self.command, path, query, headers, signed, sent)
        if found != parts["Signature"]:
            raise Refusal(403, "SignatureDoesNotMatch", "the signature is another")
        if hashlib.sha256(body).hexdigest() != sent:
            raise Refusal(400, "XAmzContentSHA256Mismatch", "the body has another hash")

    def read_body(self, fault):
        left, body = int(self.headers.get("Content-Length") or 0), b""
        if "cut" in fault and self.command == "PUT":
            self.rfile.read(min(left, fault["cut"]))
            self.close_connection = True
            self.connection.close()
            return None
        while left > 0:
            time.sleep(fault.get("slow", 0))
            piece = self.rfile.read(min(left, SLICE))
            body, left = body + piece, left - len(piece)
        return body

    def handle_one(self):
        path, _, query = self.path.partition("?")
        # As it came; canonical form wants the parameters sorted, each with its '='.
        canonical = "&".join(sorted(query.split("&"))) if query else ""
        values = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        bucket, _, key = urllib.parse.unquote(path).lstrip("/").partition("/")
        fault = self.fault_of(f"{bucket}/{key}" if key else f"{bucket}/" + (
            "list" if self.command == "GET" else ""))
        body = self.read_body(fault)
        if body is None:
            return
        try:
            if "status" in fault:
                raise Refusal(fault["status"], fault.get("code", ""), fault.get("message", "so"))
            self.check_signature(path, canonical, body)
            folder = self.server.folder / bucket
            if not folder.is_dir():
                raise Refusal(404, "NoSuchBucket", "The specified bucket does not exist")
            self.act(folder, key, values, body, fault)
        except Refusal as refusal:
            xml = (f"<?xml version=\"1.0\"?><Error><Code>{refusal.code}</Code><Message>"
                   f"{escape(refusal.message)}</Message>{refusal.extra}</Error>")
            self.answer(refusal.status, b"" if self.command == "HEAD" else xml.encode())

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_one

    def act(self, folder, key, values, body, fault):
        if not key:
            return self.list(folder, values, fault)
        path = folder / key
        uploads = self.server.uploads
        if self.command == "POST" and "uploads" in values:
            name = uuid.uuid4().hex
            uploads[name] = {}
            return self.answer(200, f"<R><UploadId>{name}</UploadId></R>".encode())
        if "uploadId" in values:
            if values["uploadId"] not in uploads:
                raise Refusal(404, "NoSuchUpload", "no such upload")
            parts = uploads[values["uploadId"]]
            if self.command == "PUT":
                parts[int(values["partNumber"])] = body
                return self.answer(200, b"", {"ETag": f'"{hashlib.md5(body).hexdigest()}"'})
            del uploads[values["uploadId"]]
            if self.command == "DELETE":
                return self.answer(204)
            listed = body.decode().count("<PartNumber>")
            if listed != len(parts):
                raise Refusal(400, "InvalidPart", "parts are missing")
            return self.store(path, b"".join(parts[n] for n in sorted(parts)), fault, True)
        if self.command == "PUT":
            return self.store(path, body, fault, False)
        if self.command == "DELETE":
            path.unlink(missing_ok=True)
            return self.answer(204)
        if not path.is_file():
            raise Refusal(404, "NoSuchKey", "The specified key does not exist.")
        return self.send(path.read_bytes(), fault)

    def store(self, path, body, fault, whole):
        path.parent.mkdir(parents=True, exist_ok=True)
        if fault.get("damage") and body:
            body = bytes([body[0] ^ 1]) + body[1:]
        path.write_bytes(body)
        tag = hashlib.md5(body).hexdigest()
        if whole:
            return self.answer(200, f"<R><ETag>{tag}-2</ETag></R>".encode())
        self.answer(200, b"", {"ETag": f'"{tag}"'})

    def send(self, body, fault):
        if fault.get("damage") and body:
            body = bytes([body[0] ^ 1]) + body[1:]
        wanted = self.headers.get("Range")
        if not wanted:
            return self.answer(200, body, {}, fault)
        start = int(wanted.removeprefix("bytes=").rstrip("-"))
        if start >= len(body):
            raise Refusal(416, "InvalidRange", "not satisfiable")
        self.answer(206, body[start:],
                    {"Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}"}, fault)

    def list(self, folder, values, fault):
        if self.command != "GET" or values.get("list-type") != "2":
            raise Refusal(400, "InvalidRequest", "what?")
        prefix = values.get("prefix", "")
        keys = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
        keys = [k for k in keys if k.startswith(prefix)]
        after = base64.b64decode(values.get("continuation-token", "")).decode()
        keys = [k for k in keys if k > after]
        most = self.server.page
        page, more = keys[:most], len(keys) > most
        items = "".join(f"<Contents><Key>{escape(urllib.parse.quote(k))}</Key><Size>"
                        f"{(folder / k).stat().st_size}</Size></Contents>" for k in page)
        token = base64.b64encode(page[-1].encode()).decode() if more else ""
        self.answer(200, (f"<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>"
                          f"{str(more).lower()}</IsTruncated>{items}<NextContinuationToken>{token}"
                          "</NextContinuationToken></ListBucketResult>").encode(), {}, fault)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--faults", type=pathlib.Path, required=True)
    parser.add_argument("--log", required=True)
    options = parser.parse_args()
    check_published_example()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.folder, server.log, server.faults = options.folder, options.log, options.faults
    server.page, server.uploads, server.lock = 3, {}, threading.Lock()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
