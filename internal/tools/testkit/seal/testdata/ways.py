"""Ways out of a sealed run. Each prints a line: ok or FAIL, the way, what happened."""
import array, ctypes, errno, fcntl, os, signal, socket, struct, subprocess, sys, termios

DIR, PORT = os.environ["SEAL_DIR"], int(os.environ["SEAL_PORT"])
libc = ctypes.CDLL(None, use_errno=True)
socket.setdefaulttimeout(5)
JUDGED, NOTHING = "judged", "nothing"


def way(name, expected, do):
    sys.stdout.flush()
    try:
        got = do()
    except OSError as e:
        got = errno.errorcode.get(e.errno, str(e)) if e.errno else "error: " + str(e)
    except subprocess.TimeoutExpired:
        got = "timeout"
    if isinstance(got, bytes):
        got = got.decode("latin-1")
    text = str(got)
    if expected == JUDGED:
        ok = "the page" in text
    else:
        ok = "the page" not in text and "200 OK" not in text and not text.startswith("reached")
    print("ok  " if ok else "FAIL", expected.ljust(8), name.ljust(44), " ".join(text.split())[:70])


def http(c, host="site.test", path="/a"):
    c.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    got = b""
    while True:
        b = c.recv(4096)
        if not b:
            return got
        got += b


def tcp(host, port, name=None, family=None, path="/a"):
    def do():
        if family is None:
            c = socket.create_connection((host, port))
        else:
            c = socket.socket(family)
            c.connect((host, port))
        with c:
            return http(c, name or host, path)
    return do


def run(*args):
    def do():
        p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=8, stdin=subprocess.DEVNULL)
        return p.stdout
    return do


def call(number, *args):
    r = libc.syscall(number, *args)
    if r < 0:
        raise OSError(ctypes.get_errno(), "")
    return r


# Judged: the page comes through heed alone, whose answers to disallowed pages are 403.
way("raw socket to a name", JUDGED, tcp("site.test", 80))
way("a disallowed page", NOTHING, tcp("site.test", 80, path="/p"))
way("an odd port", JUDGED, tcp("site.test", 8081, "site.test:8081"))
way("an IPv4 literal", JUDGED, tcp("192.0.2.10", 80))
way("an IPv4 literal, odd port", JUDGED, tcp("192.0.2.10", 8080, "192.0.2.10:8080"))
way("an IPv6 literal", JUDGED, tcp("2001:db8::10", 80, "[2001:db8::10]", socket.AF_INET6))
way("an IPv4 address mapped to IPv6", JUDGED, tcp("::ffff:192.0.2.10", 80, "192.0.2.10", socket.AF_INET6))
way("curl without variables", JUDGED, run("env", "-i", "curl", "-sS", "http://site.test/a"))
way("MPTCP", JUDGED, lambda: http(*[(c, c.connect(("192.0.2.10", 80)))[0] for c in [socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)]], "192.0.2.10"))

# Nothing: loopback is the run's own, and addresses of the machine lead to heed.
way("the web server at 127.0.0.1", NOTHING, tcp("127.0.0.1", PORT))
way("the web server at ::1", NOTHING, tcp("::1", PORT))
way("the web server at 0.0.0.0", NOTHING, tcp("0.0.0.0", PORT))
way("the web server at 127.9.9.9", NOTHING, tcp("127.9.9.9", PORT))
way("the web server through the proxy variable", NOTHING, run("curl", "-sS", "--noproxy", "", f"http://127.0.0.1:{PORT}/a"))
way("a name that is localhost", NOTHING, run("curl", "-sS", "--noproxy", "", f"http://localhost:{PORT}/a"))
def proxied(target, port=None):
    """A request in absolute form to the proxy of the variables, perhaps with an own service at the port."""
    def do():
        host, own = os.environ["http_proxy"].split("//")[1].strip("/").rsplit("@")[-1].split(":")
        with socket.socket() as l:
            if port:
                l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                l.bind(("127.0.0.1", port))
                l.listen()
            with socket.create_connection((host, int(own))) as c:
                c.sendall(f"GET http://{target}/p HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n".encode())
                return c.makefile("rb").read()
    return do


def connected(target, path="/a"):
    """A CONNECT to the proxy of the variables, and HTTP inside."""
    def do():
        host, own = os.environ["http_proxy"].split("//")[1].strip("/").rsplit("@")[-1].split(":")
        with socket.create_connection((host, int(own))) as c:
            c.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\nGET {path} HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n".encode())
            return c.makefile("rb").read()
    return do


for spelling in ["127.0.0.1", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "localhost", "localhost.", "x.localhost", "[::ffff:7f00:1]"]:
    way("through the proxy: " + spelling, NOTHING, proxied(f"{spelling}:{PORT}"))
way("an own service at the web server's port", NOTHING, proxied(f"127.0.0.1:{PORT}", PORT))
way("the same by name", NOTHING, proxied(f"localhost:{PORT}", PORT))
way("CONNECT to the web server", NOTHING, connected(f"127.0.0.1:{PORT}"))
way("CONNECT to it by name", NOTHING, connected(f"localhost:{PORT}"))
way("CONNECT, a disallowed page", NOTHING, connected("site.test:80", "/p"))
way("a disallowed page, escaped", NOTHING, tcp("site.test", 80, path="/%70"))
way("a disallowed page, dots", NOTHING, tcp("site.test", 80, path="/a/../p"))
way("a disallowed page, absolute form", NOTHING, tcp("site.test", 80, path="http://site.test/p"))
way("a Host of the web server", NOTHING, tcp("site.test", 80, f"127.0.0.1:{PORT}"))
def listeners():
    """Ports of the network that are listened to: heed's."""
    ports = set()
    for table in "tcp", "tcp6":
        for line in open("/proc/net/" + table).readlines()[1:]:
            f = line.split()
            if f[3] == "0A":
                ports.add(int(f[1].rsplit(":")[1], 16))
    return ports


def attempt(port):
    try:
        return http(socket.create_connection(("127.0.0.1", port), 2), f"127.0.0.1:{PORT}").decode("latin-1")
    except OSError as e:
        return str(e)


way("the listeners of heed", NOTHING, lambda: " ".join(attempt(p) for p in sorted(listeners())))


def fast_open(host, port):
    with socket.socket() as s:
        s.sendto(f"GET /p HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode(), 0x20000000, (host, port))
        return s.makefile("rb").read()


way("TCP fast open, a disallowed page", NOTHING, lambda: fast_open("192.0.2.10", 80))
way("TCP fast open to the web server", NOTHING, lambda: fast_open("127.0.0.1", PORT))
way("UDP from port 53", NOTHING, lambda: (lambda s: (s.setsockopt(1, 15, 1), s.bind(("198.18.7.7", 53)), s.sendto(b"x", ("192.0.2.10", 9)), "reached")[3])(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)))
way("UDP-Lite", NOTHING, lambda: ("reached", socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136).sendto(b"x", ("192.0.2.10", 9)))[0])
way("the metadata address", NOTHING, tcp("169.254.169.254", 80))
way("a link-local address", NOTHING, lambda: http(socket.create_connection(("fe80::1%lo", 80)), "[fe80::1]"))
way("Host of another site", NOTHING, tcp("192.0.2.10", 80, "127.0.0.1"))
way("SSH to a site", NOTHING, lambda: (lambda c: (c.sendall(b"SSH-2.0-x\r\n"), c.recv(100))[1])(socket.create_connection(("site.test", 22))))
way("TLS to a resolver (DoT)", NOTHING, run("curl", "-sSk", "-m", "4", "https://192.0.2.53:853/"))


def udp(host, port, family=socket.AF_INET, connected=False):
    def do():
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            if connected:
                s.connect((host, port))
                s.send(b"x")
            else:
                s.sendto(b"x", (host, port))
            s.settimeout(0.3)
            return "reached " + repr(s.recv(100))
    return do


way("QUIC (UDP 443)", NOTHING, udp("192.0.2.10", 443))
way("QUIC, connected", NOTHING, udp("192.0.2.10", 443, connected=True))
way("QUIC over IPv6", NOTHING, udp("2001:db8::10", 443, socket.AF_INET6))
way("NTP", NOTHING, udp("192.0.2.10", 123))
way("multicast (mDNS)", NOTHING, udp("224.0.0.251", 5353))

def dns(kind):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        q = struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + b"\x04data\x04test\x00" + struct.pack(">2H", kind, 1)
        s.sendto(q, ("192.0.2.53", 53))
        r = s.recv(512)
        return "answers: %d" % struct.unpack(">H", r[6:8])[0] if r[6:8] == b"\0\0" else "reached"


way("DNS: a record of texts from a server elsewhere", NOTHING, lambda: dns(16))
way("DNS: HTTPS records", NOTHING, lambda: dns(65))
way("ICMP datagram socket", NOTHING, lambda: ("reached", socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP).sendto(b"\x08\0\0\0\0\0\0\0", ("192.0.2.10", 0))))
way("raw socket", NOTHING, lambda: ("reached", socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))[0])
way("packet socket", NOTHING, lambda: ("reached", socket.socket(socket.AF_PACKET, socket.SOCK_RAW))[0])
way("SCTP", NOTHING, lambda: ("reached", socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132).connect(("192.0.2.10", 80)))[0])
way("vsock", NOTHING, lambda: ("reached", socket.socket(40, socket.SOCK_STREAM))[0])
way("XDP socket", NOTHING, lambda: ("reached", socket.socket(44, socket.SOCK_RAW))[0])
way("Bluetooth", NOTHING, lambda: ("reached", socket.socket(31, socket.SOCK_STREAM, 3))[0])
way("io_uring, inherited", NOTHING, lambda: "reached %d" % call(426, 0, 1, 0, 0, 0, 0))
way("a key that a program outside makes", NOTHING, lambda: "reached %d" % call(249, b"dns_resolver", b"site.test", b"", -3))
way("AF_ALG", NOTHING, lambda: ("reached", socket.socket(38, 5))[0])
way("io_uring", NOTHING, lambda: "reached %d" % call(425, 8, ctypes.create_string_buffer(120)))


def unix(path, kind=socket.SOCK_STREAM):
    def do():
        with socket.socket(socket.AF_UNIX, kind) as s:
            s.connect(path)
            return "reached"
    return do


os.chdir(DIR)
way("Unix socket outside", NOTHING, unix(DIR + "/outside.sock"))
way("Unix socket outside, relative", NOTHING, unix("outside.sock"))
way("Unix socket outside, through /proc", NOTHING, unix("/proc/self/root" + DIR + "/outside.sock"))
link = "/tmp/seal-link-%d" % os.getpid()
os.symlink(DIR + "/outside.sock", link)
way("Unix socket outside, through a link", NOTHING, unix(link))
os.unlink(link)
way("Unix datagram socket", NOTHING, unix(DIR + "/outside.sock", socket.SOCK_DGRAM))
way("Unix datagram pair", NOTHING, lambda: ("reached", socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))[0])
way("abstract socket outside", NOTHING, unix("\0seal-" + os.path.basename(DIR)))
way("heed's control socket", NOTHING, unix(os.environ["HEED_STATE"] + "/control.sock"))
way("heed mode observe", NOTHING, run(DIR + "/heed", "mode", "observe", "--for", "1h", "--reason", "x"))


def inside(path):
    with socket.socket(socket.AF_UNIX) as l, socket.socket(socket.AF_UNIX) as c:
        l.bind(path)
        l.listen()
        c.connect(path)
        if path[0] != "\0":
            os.unlink(path)
        return "the page of an own socket"


way("Unix socket made inside", JUDGED, lambda: inside("/tmp/seal-own-%d" % os.getpid()))
way("abstract socket made inside", JUDGED, lambda: inside("\0own"))

def vm_read(pid):
    class Iov(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
    at = int(open(f"/proc/{pid}/maps").readline().split("-")[0], 16)
    buf = ctypes.create_string_buffer(16)
    return call(310, pid, ctypes.byref(Iov(ctypes.addressof(buf), 16)), 1, ctypes.byref(Iov(at, 16)), 1, 0)


def leave_chroot():
    """As root, a working directory outside of the root directory has parents."""
    child = os.fork()
    if child == 0:
        try:
            os.chdir("/")
            os.chroot("/tmp")
            for _ in range(64):
                os.chdir("..")
            os.chroot(".")
            os._exit(1 if os.path.exists(DIR + "/tree/outside") else 0)
        except OSError as e:
            os._exit(0)
    return "reached" if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) else "none"


# The namespaces and the privileges.
way("the directories around a chroot", NOTHING, leave_chroot)
way("unshare again, then connect", NOTHING, run("unshare", "-Urn", "env", "-i", "curl", "-sS", "-m", "3", "http://192.0.2.10/a"))
way("nsenter of the first process", NOTHING, run("nsenter", "-t", "1", "-n", "curl", "-sS", "-m", "3", f"http://127.0.0.1:{PORT}/a"))
parent = os.getppid()
way("setns to the network of heed run", NOTHING, lambda: "reached %d" % call(308, os.open(f"/proc/{parent}/ns/net", os.O_RDONLY), 0x40000000))
way("ptrace of heed run", NOTHING, lambda: "reached %d" % call(101, 16, parent, 0, 0))
way("pidfd_getfd of heed run", NOTHING, lambda: "reached %d" % call(438, call(434, parent, 0), 3, 0))
way("memory of heed run", NOTHING, lambda: ("reached", open(f"/proc/{parent}/mem", "rb"))[0])
way("root of heed run", NOTHING, lambda: ("reached", os.listdir(f"/proc/{parent}/root/"))[0])
way("ip: no loopback interface", NOTHING, run("ip", "link", "set", "lo", "down"))
way("ip: another route", NOTHING, run("ip", "route", "add", "default", "dev", "lo"))
way("nft: no rules", NOTHING, run("nft", "flush", "ruleset"))
way("then the web server", NOTHING, tcp("127.0.0.1", PORT))
way("core_pattern", NOTHING, lambda: ("reached", open("/proc/sys/kernel/core_pattern", "w"))[0])
way("uevent_helper", NOTHING, lambda: ("reached", open("/sys/kernel/uevent_helper", "w"))[0])
way("/sys", NOTHING, lambda: ("reached", open("/sys/kernel/mm/ksm/run", "w"))[0])
way("sysrq", NOTHING, lambda: ("reached", open("/proc/sysrq-trigger", "a"))[0])
way("setns to the namespaces of the first process", NOTHING, lambda: "reached %d" % call(308, call(434, 1, 0), 0x40000000 | 0x10000000))
way("clone into a new user and its network", NOTHING, run("unshare", "-Ur", "sh", "-c", "ip link set lo down && ip addr add 192.0.2.99/24 dev lo && echo reached"))
way("process_vm_readv of heed run", NOTHING, lambda: "reached" if vm_read(parent) > 0 else "none")
way("descriptors of heed run", NOTHING, lambda: ("reached", [open(f"/proc/{parent}/fd/{f}", "rb") for f in os.listdir(f"/proc/{parent}/fd")])[0])
way("working directory of heed run", NOTHING, lambda: ("reached", os.listdir(f"/proc/{parent}/cwd/"))[0])
way("open_by_handle_at", NOTHING, lambda: "reached %d" % call(304, os.open("/", os.O_RDONLY), ctypes.create_string_buffer(struct.pack("IiQ", 8, 1, 2) + b"\0" * 64), 0))
way("pivot_root", NOTHING, lambda: "reached %d" % call(155, b"/tmp", b"/tmp"))
way("move_mount of the root", NOTHING, lambda: "reached %d" % call(428, -100, b"/", 1))
way("fsopen", NOTHING, lambda: "reached %d" % call(430, b"proc", 0))
way("perf_event_open", NOTHING, lambda: "reached %d" % call(298, ctypes.create_string_buffer(struct.pack("II", 1, 128) + b"\0" * 120), parent, -1, -1, 0))
way("a capability again", NOTHING, lambda: "reached %d" % call(157, 47, 2, 12, 0, 0))
way("mount", NOTHING, lambda: ("reached", call(165, b"x", b"/mnt", b"tmpfs", 0, 0))[0])
way("umount of what is hidden", NOTHING, lambda: ("reached", call(166, os.environ["HEED_STATE"].encode(), 2))[0])
way("heed's CA key", NOTHING, lambda: ("reached", open(os.environ["HEED_STATE"] + "/ca-key.pem"))[0])
way("IP_TRANSPARENT", NOTHING, lambda: ("reached", socket.socket().setsockopt(0, 19, 1))[0])
way("SO_MARK", NOTHING, lambda: ("reached", socket.socket().setsockopt(1, 36, 1))[0])
way("bpf", NOTHING, lambda: "reached %d" % call(321, 5, ctypes.create_string_buffer(128), 128))
way("inherited sockets", NOTHING, lambda: "reached" if any("socket:" in os.readlink("/proc/self/fd/" + f) for f in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + f) and int(f) > 2) else "none")
way("TIOCSTI", NOTHING, lambda: ("reached", fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), termios.TIOCSTI, b"x"))[0])
way("sudo", NOTHING, run("su", "-c", "id -u"))
way("after all this, the page", JUDGED, tcp("site.test", 80))
