#!/usr/bin/env python3
"""A webhook for tests: FOLDER gets each posted body as post_0.json, post_1.json, ...; the log gets
"POST /path STATUS". A path that begins with /absent is answered 404, /down 503, /hang never. The
same words on the command line as archive_server.py; its standard input keeps it alive.
"""
import argparse
import http.server
import pathlib
import sys
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        server = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        faults = {"/absent": 404, "/down": 503}
        status = next((s for start, s in faults.items() if self.path.startswith(start)), 200)
        with server.lock:
            if status == 200:
                part = server.folder / "part"
                part.write_bytes(body)
                part.rename(server.folder / f"post_{server.posts}.json")
                server.posts += 1
            with open(server.log, "a") as log:
                log.write(f"POST {self.path} {status}\n")
        if self.path.startswith("/hang"):
            server.never.wait()
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--faults")
    parser.add_argument("--log", required=True)
    given = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.folder, server.log, server.posts = given.folder, given.log, 0
    server.lock, server.never = threading.Lock(), threading.Event()
    print(server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
