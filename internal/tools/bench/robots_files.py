"""The robots.txt files of sites, fetched once each, for the proxies that are compared."""
import http.client
from urllib.parse import urlsplit
from protego import Protego


class Files:
    """hosts is a file in the form of /etc/hosts."""

    def __init__(self, hosts):
        with open(hosts) as lines:
            self.addresses = {name: address for address, name in map(str.split, lines)}
        self.known = {}

    def allow(self, url, agent):
        parts = urlsplit(url)
        origin = parts.scheme, parts.netloc
        if origin not in self.known:
            self.known[origin] = self.fetch(parts)
        return self.known[origin].can_fetch(url, agent)

    def fetch(self, parts):
        address = self.addresses.get(parts.hostname, parts.hostname)
        connection = http.client.HTTPConnection(address, parts.port or 80, timeout=60)
        connection.request("GET", "/robots.txt", headers={"Host": parts.netloc})
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        return Protego.parse(text if answer.status == 200 else "")
