"""Judges requests by robots.txt in mitmproxy, with python3-protego, and logs them."""
import time
from mitmproxy import ctx, http
from robots_files import Files


class Robots:
    def load(self, loader):
        loader.add_option("robots_hosts", str, "", "a file in the form of /etc/hosts")
        loader.add_option("robots_log", str, "", "the access log")

    def running(self):
        self.files = Files(ctx.options.robots_hosts)
        self.log = open(ctx.options.robots_log, "a", buffering=1)

    def request(self, flow):
        r = flow.request
        if not self.files.allow(r.url, r.headers.get("User-Agent", "")):
            flow.response = http.Response.make(403, b"robots.txt does not allow it\n", {"Content-Type": "text/plain"})
        elif r.host in self.files.addresses:
            name = r.headers["Host"]
            r.host = self.files.addresses[r.host]
            r.headers["Host"] = name

    def response(self, flow):
        r = flow.request
        self.log.write(f"{time.time():.3f} {r.method} {r.pretty_url} {flow.response.status_code}\n")


addons = [Robots()]
