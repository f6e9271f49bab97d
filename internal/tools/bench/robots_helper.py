"""Judges URLs by robots.txt for Squid's external_acl_type, with python3-protego.

Arguments: a file in the form of /etc/hosts. A line in: channel, URL, User-Agent
(escaped). A line out: channel, then OK (allowed) or ERR.
"""
import sys
from urllib.parse import unquote
from robots_files import Files

files = Files(sys.argv[1])
for line in sys.stdin:
    channel, url, agent = line.split()[:3]
    verdict = "OK" if files.allow(url, unquote(agent)) else "ERR"
    sys.stdout.write(channel + " " + verdict + "\n")
    sys.stdout.flush()
