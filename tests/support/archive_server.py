#!/usr/bin/env python3
"""A local HTTP server with the faults of real ones, for tests of downloads.

    archive_server.py FOLDER [--faults FILE] [--log FILE]

Serves FOLDER on 127.0.0.1, any free port; prints the port, then serves until its standard input
ends, so that it never outlives the test. FILE is JSON: a path to a list of faults, one a request,
used up in turn; a path without any left is served well. A fault is an object:

    {"status": 503}            that answer and no body ("retry_after": seconds goes along)
    {"cut": N}                 the line is cut after N bytes of the body
    {"stall": N}               after N bytes nothing comes any more
    {"ignore_range": true}     always the whole file
    {"no_marks": true}         neither ETag nor Last-Modified
    {"swap": NAME}             another file of FOLDER from now on (another version, another ETag)
    {"shift": N}               ranges begin N bytes off

The log has a line a request: METHOD PATH RANGE IF-RANGE STATUS, "-" for what is absent.
"""
import argparse
import hashlib
import http.server
import json
import pathlib
import re
import sys
import threading
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, headers, fault):
        if fault.get("log"):
            with open(fault["log"], "a", encoding="utf-8") as log:
                log.write(" ".join([self.command, self.path, self.headers.get("Range") or "-",
                                    self.headers.get("If-Range") or "-", str(status)]) + "\n")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def locate(self, name):
        return self.server.folder / name

    def do_GET(self):
        server = self.server
        name = self.path.lstrip("/")
        with server.lock:
            queue = server.faults.get(name, [])
            fault = dict(queue.pop(0)) if queue else {}
            if "swap" in fault:
                server.swapped[name] = fault["swap"]
            name = server.swapped.get(name, name)
        fault["log"] = server.log
        path = self.locate(name)
        if "status" in fault or not path.is_file():
            headers = {"Content-Length": "0"}
            if "retry_after" in fault:
                headers["Retry-After"] = str(fault["retry_after"])
            return self.answer(fault.get("status", 404), headers, fault)
        body = path.read_bytes()
        self.send_file(body, '"' + hashlib.md5(body).hexdigest() + '"', fault)

    def send_file(self, body, etag, fault):
        headers = {} if fault.get("no_marks") else {"ETag": etag}
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        other = self.headers.get("If-Range") not in (None, etag)
        start = int(wanted[1]) if wanted and not other and not fault.get("ignore_range") else None
        if start is not None and start >= len(body):
            headers |= {"Content-Range": f"bytes */{len(body)}", "Content-Length": "0"}
            return self.answer(416, headers, fault)
        status = 200
        if start is not None:
            start = max(0, start + fault.get("shift", 0))
            status = 206
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
            body = body[start:]
        headers["Content-Length"] = str(len(body))
        self.answer(status, headers, fault)
        stop = min(fault.get("cut", len(body)), fault.get("stall", len(body)))
        self.wfile.write(body[:stop])
        self.wfile.flush()
        if "stall" in fault:
            self.server.ended.wait(60)
        if stop < len(body):
            self.close_connection = True


def main(handler=Handler):
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--faults", type=pathlib.Path)
    parser.add_argument("--log", default="")
    options = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.folder, server.log, server.swapped = options.folder, options.log, {}
    server.faults = json.loads(options.faults.read_text()) if options.faults else {}
    server.lock, server.ended = threading.Lock(), threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    server.ended.set()


if __name__ == "__main__":
    main()
