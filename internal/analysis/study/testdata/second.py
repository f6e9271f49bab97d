"""The tables coverage, levels and substrings of a log in the combined format, by rules of
their own: python3 second.py LOG DIRECTORY-OF-VERSIONS TOKEN..."""
import datetime, os, re, sys, urllib.robotparser

log, versions, tokens = sys.argv[1], sys.argv[2], sys.argv[3:]
form = re.compile(r'(\S+) \S+ .*?\[([^]]+)\] "((?:[^"\\]|\\.)*)" (\d+) (\S+) "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)"$')

lines = unparsed = octets = agents = disordered = 0
requests, times, zones, last = [], [], set(), None
for line in open(log, encoding="latin-1"):
    lines += 1
    found = form.match(line.rstrip("\n"))
    if not found:
        unparsed += 1
        continue
    at = datetime.datetime.strptime(found[2], "%d/%b/%Y:%H:%M:%S %z")
    zones.add(found[2][-5:-2] + ":" + found[2][-2:])
    disordered += last is not None and at < last
    last = at
    times.append(at)
    octets += int(found[5]) if found[5].isdigit() else 0
    agents += found[7] != "-"
    requests.append((found[3].split(" ")[1], found[7]))


def utc(at):
    return at.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


for what, value in [("lines", lines), ("unparsed lines", unparsed), ("requests", len(requests)), ("first request", utc(min(times))),
                    ("last request", utc(max(times))), ("time zones", " ".join(sorted(zones))), ("out of order", disordered),
                    ("whole seconds only", "yes"), ("with a User-Agent", agents), ("bytes", octets)]:
    print("coverage", what, value, sep=",")

for number, name in enumerate(sorted(os.listdir(versions)), 1):
    text = open(os.path.join(versions, name)).read().splitlines()
    rules = urllib.robotparser.RobotFileParser()
    rules.parse(text)
    paths = {"/", "/a-path-that-is-in-no-rule"} | {l.split(":", 1)[1].strip() for l in text if l.lower().startswith(("allow:", "disallow:"))}
    groups = {l.split(":", 1)[1].strip().lower() for l in text if l.lower().startswith("user-agent:")}
    for token in tokens:
        allowed = sum(rules.can_fetch(token, p) for p in paths)
        level = "full" if allowed == 0 else "none" if allowed == len(paths) else "partial"
        print("levels", number, token, len(paths), allowed, level, "yes" if token in groups else "no", sep=",")

for token in tokens:
    mine = [target for target, agent in requests if token in agent.lower()]
    robots = sum(t.split("?")[0] == "/robots.txt" for t in mine)
    print("substrings", token, len(mine), robots, len(mine) - robots, sep=",")
