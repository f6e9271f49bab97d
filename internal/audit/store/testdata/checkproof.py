"""Checks a proof of heed's (heed help proofs): python3 checkproof.py FILE [KEY], with openssl.
Exit status: 0 right, 1 wrong, 2 no proof."""
import base64, hashlib, json, re, subprocess, sys, tempfile

COLUMNS = {
    "asker": "id client user client_name mode user_agent tokens declared sent sent_from purpose signed_key signed_by also_obey",
    "site": "id scheme host port",
    "body": "id sha256 size zlib",
    "snapshot": "id site time asked_as chain status headers body",
    "policy": "id site snapshot profile state status time fresh_until stale no_connection own error note",
    "ground": "id judged verdict reason token group_name rule line variant unseen settled detail policy configuration engine signals",
    "entry": "seq id time run asker port site ground method target raw redacted policy_age asked waited part page revises turn",
    "outcome": "entry in_commit status from_site bytes_in bytes_out duration truncated error late site_status site_answer signals",
}
NUMBER = {"asker": 3, "site": 4, "body": 5, "snapshot": 6, "policy": 7, "ground": 8, "entry": 9, "outcome": 10}
PRIVATE = {"entry": "port page", "outcome": "error", "snapshot": "asked_as", "policy": "error", "ground": "detail"}
REFERS = {"entry": "site:site ground:ground", "outcome": "late:ground", "ground": "policy:policy",
          "policy": "site:site snapshot:snapshot", "snapshot": "site:site body:body"}

class Wrong(Exception):
    pass

def need(ok, what):
    if not ok:
        raise Wrong(what)

def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()

def octets(text):
    data = base64.b64decode(text, validate=True)
    need(base64.b64encode(data).decode() == text, "base64 has one spelling")
    return data

def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])

def value(v):
    if v is None:
        return b"\0"
    if isinstance(v, int) and not isinstance(v, bool):
        return b"\1" + varint(2 * v if v >= 0 else -2 * v - 1)
    if isinstance(v, str):
        return b"\2" + varint(len(v.encode())) + v.encode()
    need(isinstance(v, dict) and len(v) == 1, "a value has none of the forms")
    (form, text), = v.items()
    data = text.encode() if form == "octets" else octets(text)
    need(form in ("octets", "base64", "text"), "a value has none of the forms")
    return (b"\2" if form == "text" else b"\3") + varint(len(data)) + data

def values(names, of):
    need(set(of) <= set(names.split()) and None not in of.values(), "other columns")
    return b"".join(value(of.get(name)) for name in names.split())

def root(index, size, leaf, path):
    """The root of a tree in which the leaf is at index (RFC 9162 section 2.1.3.2)."""
    need(0 <= index < size, "a place is outside its tree")
    last, h = size - 1, leaf
    for p in path:
        need(last > 0, "a path is too long")
        if index & 1 or index == last:
            h = sha(b"\1", p, h)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            h = sha(b"\1", h, p)
        index, last = index >> 1, last >> 1
    need(last == 0, "a path is too short")
    return h

def signed(text, key):
    """The size and the root of a checkpoint that the key has signed."""
    name, number, public = key.split("+", 2)
    public = octets(public)
    need(sha(name.encode(), b"\n", public)[:4].hex() == number and public[0] == 1, "the key is none")
    body, line = text[:text.index("\n\n") + 1], text[text.index("\n\n") + 2:]
    need(re.fullmatch("\u2014 %s \\S+\n" % re.escape(name), line), "there is another signature")
    signature = octets(line[:-1].split(" ")[2])
    need(signature[:4].hex() == number, "the signature is of another key")
    with tempfile.TemporaryDirectory() as d:
        for file, data in (("m", body.encode()), ("s", signature[4:]), ("k", bytes.fromhex("302a300506032b6570032100") + public[1:])):
            with open(d + "/" + file, "wb") as f:
                f.write(data)
        run = subprocess.run(["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-keyform", "DER", "-inkey", d + "/k",
                              "-in", d + "/m", "-sigfile", d + "/s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    need(run.returncode == 0, "the signature is wrong")
    origin, size, head = body[:-1].split("\n")
    need(origin.startswith("heed-record/") and str(int(size)) == size, "the checkpoint is none")
    return int(size), octets(head)

def leaf(row):
    names, private, shown = COLUMNS[row["table"]], PRIVATE.get(row["table"], "").split(), row["values"]
    need(all(shown.get(name) is None for name in private), "a private value is shown")
    salt, hidden = octets(row["salt"]), b""
    if "private" in row:
        hidden = octets(row["private"]["salt"]) + values(" ".join(private), row["private"]["values"])
        need(set(row["private"]) == {"salt", "values"} and len(octets(row["private"]["salt"])) == 16, "a salt has 16 octets")
        hidden = sha(hidden)
    elif "hidden" in row:
        hidden = octets(row["hidden"])
    need(len(salt) == 16 and len(hidden) in (0, 32) and not ("private" in row and "hidden" in row), "a salt or a hash has another size")
    return sha(b"\0", salt, bytes([NUMBER[row["table"]]]), values(names, shown), hidden)

def check(proof, key):
    need(set(proof) == {"form", "checkpoint", "key", "commits", "rows", "hashes"} and key in (None, proof["key"]), "other parts, or another key")
    size, head = signed(proof["checkpoint"], proof["key"])
    data, used, found = octets(proof["hashes"]), set(), {}
    hashes = [data[i:i + 32] for i in range(0, len(data), 32)]

    def at(i):
        need(isinstance(i, int) and 0 <= i < len(hashes), "a hash is missing")
        used.add(i)
        return hashes[i]
    for c in proof["commits"]:
        of = sha(b"\0", at(c["root"]), c["leaves"].to_bytes(8, "big"))
        need(root(c["n"], size, of, [at(i) for i in c["path"]]) == head, "commit %d is not in the record" % c["n"])
    for row in proof["rows"]:
        need(row["commit"] >= 0 and row["place"] > 0, "a place is none")
        c = proof["commits"][row["commit"]]
        need(root(row["place"], c["leaves"], leaf(row), [at(i) for i in row["path"]]) == at(c["root"]), "a row of %s is wrong" % row["table"])
        name = row["table"], row["values"].get(COLUMNS[row["table"]].split()[0])
        need(name not in found, "a row is there twice")
        found[name] = row["values"]
    need(len(used) * 32 == len(data) and {r["commit"] for r in proof["rows"]} == set(range(len(proof["commits"]))), "something proves nothing")
    need(any(table == "entry" for table, _ in found), "it has no decision")
    for (table, id), of in found.items():
        for column, to in (r.split(":") for r in REFERS.get(table, "").split()):
            need(of.get(column) is None or (to, of[column]) in found, "%s %s is missing" % (to, of.get(column)))
        need(table != "outcome" or ("entry", id) in found, "an outcome has no decision")

def verdict(text, key=None):
    try:
        proof = json.loads(text)
        if proof["form"] != "heed proof 1":
            raise ValueError
    except (ValueError, KeyError, TypeError):
        return 2, "this is no proof"
    try:
        check(proof, key)
    except Exception as e:
        return 1, "wrong: %s" % e
    return 0, "right"

if __name__ == "__main__":
    status, words = verdict(open(sys.argv[1], encoding="utf-8").read(), *sys.argv[2:3])
    print(words)
    sys.exit(status)
