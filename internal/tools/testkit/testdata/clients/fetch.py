"""Prints the page at a URL as a Python program would: fetch.py URL [USER-AGENT]."""
import sys
import urllib.request

headers = {"User-Agent": sys.argv[2]} if len(sys.argv) > 2 else {}
request = urllib.request.Request(sys.argv[1], headers=headers)
with urllib.request.urlopen(request) as response:
    sys.stdout.buffer.write(response.read())
