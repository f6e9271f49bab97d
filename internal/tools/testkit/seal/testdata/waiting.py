"""Processes that wait for a connection and are killed. Prints the threads of heed run."""
import os, signal, socket, time

CHILDREN = 500
listener = socket.socket(socket.AF_UNIX)
path = "/tmp/seal-waiting-%d" % os.getpid()
listener.bind(path)
listener.listen(0)
first = socket.socket(socket.AF_UNIX)
first.connect(path)  # the others wait until it is accepted


def threads():
    for line in open("/proc/%d/status" % os.getppid()):
        if line.startswith("Threads:"):
            return int(line.split()[1])


children, most = [], 0
for _ in range(CHILDREN):
    child = os.fork()
    if child == 0:
        socket.socket(socket.AF_UNIX).connect(path)
        os._exit(0)
    children.append(child)
    most = max(most, threads())
for child in children[:-1]:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
most = max(most, threads())
listener.settimeout(0.1)
for _ in range(3000):  # of those that were killed some may be connected before the last one is
    try:
        listener.accept()
    except TimeoutError:
        pass
    ended, status = os.waitpid(children[-1], os.WNOHANG)
    if ended:
        print("threads", most, "last", status)
        break
os.unlink(path)
