"""say.py ADDRESS PAUSE TEXT: what a client gets that sends TEXT, PAUSE seconds apart an octet.

ADDRESS is host:port, udp/host:port, or many/host:port, which makes TEXT connections at a
time of 200 and counts the pages that come.
"""
import asyncio, socket, sys, time

kind, _, address = sys.argv[1].rpartition("/")
host, port = address.split(":")
pause, text = float(sys.argv[2]), sys.argv[3]


async def page(room, counts):
    async with room:
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /page.html HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n")
            answer = await reader.read()
            writer.close()
            status = answer.split(b" ", 2)[1].decode() if answer else "nothing"
        except OSError as e:
            status = str(e)
        counts[status] = counts.get(status, 0) + 1


async def many():
    counts, room = {}, asyncio.Semaphore(200)
    await asyncio.gather(*(page(room, counts) for _ in range(int(text))))
    print(counts)


if kind == "many":
    asyncio.run(many())
    sys.exit()
data = text.encode().decode("unicode_escape").encode("latin-1")
try:
    if kind == "udp":
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.connect((host, int(port)))
        s.settimeout(120)
        s.send(data)
        s.recv(100)
    else:
        s = socket.create_connection((host, int(port)), 120)
        for octet in data:
            s.send(bytes([octet]))
            time.sleep(pause)
        s.settimeout(120)
        print("got", s.recv(100))
except OSError as e:
    print(type(e).__name__)
