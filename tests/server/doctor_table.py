# SPDX-License-Identifier: BSD-2-Clause
"""gannet-nfs doctor on broken servers: each row makes one for real, and has the
one sentence that is right.  In name spaces of its own: see doctor_table.sh."""
import contextlib
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time

PORTMAP, NFS, MOUNT, NLM = 100000, 100003, 100005, 100021
NOENT, IO, ACCES, NOTDIR, STALE, FAULT, JUKEBOX = 2, 5, 13, 20, 70, 10006, 10008
HOST = '127.0.0.1'
failed = 0


def u32(*numbers):
    return struct.pack('>%dI' % len(numbers), *numbers)


def opaque(data):
    return u32(len(data)) + data + bytes(-len(data) % 4)


def receive(conn, size):
    data = b''
    while len(data) < size:
        more = conn.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


class Listener:
    """A port where each connection gets a thread."""

    def __init__(self, port, serve):
        self.serve, self.conns = serve, []
        self.sock = socket.create_server((HOST, port), backlog=64)
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                conn = self.sock.accept()[0]
                self.conns.append(conn)
                threading.Thread(target=self.one, args=(conn,),
                                 daemon=True).start()

    def one(self, conn):
        with contextlib.suppress(OSError, EOFError):
            self.serve(conn)
        conn.close()

    def stop(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        for conn in self.conns:
            with contextlib.suppress(OSError):
                conn.shutdown(socket.SHUT_RDWR)


class Full:
    """A port that drops: its queue is full."""

    def __init__(self, port):
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind((HOST, port))
        self.sock.listen(0)
        self.fill = [socket.socket() for _ in range(8)]
        for one in self.fill:
            one.setblocking(False)
            one.connect_ex((HOST, port))

    def stop(self):
        for one in [*self.fill, self.sock]:
            one.close()


def rpc(port, versions, answer):
    """Programs at a port: {program: (low, high)}.  What answer(program,
    procedure, arguments) returns are results, None: no answer; 'denied'."""
    def serve(conn):
        while True:
            size = struct.unpack('>I', receive(conn, 4))[0] & 0x7fffffff
            call = receive(conn, size)
            xid, _, _, prog, vers, proc, _, n = struct.unpack('>8I', call[:32])
            at = 32 + (n + 3) // 4 * 4
            at += 8 + (struct.unpack('>I', call[at + 4:at + 8])[0] + 3) // 4 * 4
            low, high = versions.get(prog, (0, 0))
            if prog not in versions:
                out = u32(0, 0, 0, 1)
            elif not low <= vers <= high:
                out = u32(0, 0, 0, 2, low, high)
            elif proc == 0 and prog != MUTE_NULL:
                out = u32(0, 0, 0, 0)
            else:
                out = answer(prog, proc, call[at:])
                if out is None:
                    continue
                out = u32(1, 1, 5) if out == 'denied' else u32(
                    0, 0, 0, 0) + out
            out = u32(xid, 1) + out
            conn.sendall(u32(0x80000000 | len(out)) + out)
    return Listener(port, serve)


MUTE_NULL = -1


def rpcbind(ports):
    """An rpcbind that tells {program: port}."""
    def answer(_, proc, args):
        prog = struct.unpack('>I', args[:4])[0]
        return u32(ports.get(prog, 0) if proc == 3 else 0)
    return rpc(111, {PORTMAP: (2, 2)}, answer)


def exports(*dirs):
    return b''.join(u32(1) + opaque(d.encode()) + (
        u32(1) + opaque(w.encode()) + u32(0) if w else u32(0))
        for d, w in dirs) + u32(0)


def server(port=2049, programs=(NFS, MOUNT), mnt=0, nfs=0, listed=None,
           versions=None, flavors=(1,)):
    """NFS and MOUNT, with the statuses of MNT and of all calls of NFS."""
    def answer(prog, proc, _):
        if prog == MOUNT and proc == 1:
            return mnt if mnt in (None, 'denied') else u32(mnt) + (
                b'' if mnt else opaque(b'root') +
                u32(len(flavors), *flavors))
        if prog == MOUNT and proc == 5:
            return exports(*([('/e', '')] if listed is None
                             else listed))
        if prog == MOUNT:
            return b''
        return nfs if nfs == 'denied' else u32(nfs, 0)
    return rpc(port, versions or {p: (3, 3) for p in programs}, answer)


def says(port, text, first=False):
    """A server that says a text, when it hears a line or at once."""
    def serve(conn):
        data = b''
        while not first and b'\n' not in data:
            data += conn.recv(4096) or (_ for _ in ()).throw(EOFError())
        conn.sendall(text)
        conn.recv(1)
    return Listener(port, serve)


def mute(port):
    return Listener(port, lambda conn: [None for _ in iter(
        lambda: conn.recv(4096), b'')])


def closes(port):
    return Listener(port, lambda conn: None)


class Away:
    """A machine that is off: its network takes all packets."""

    def __init__(self):
        ip = ['ip', 'link', 'add', 'away0', 'type', 'dummy']
        self.there = subprocess.call(ip, stderr=subprocess.DEVNULL) == 0
        if self.there:
            subprocess.check_call('ip link set away0 arp off up; ip addr add '
                                  '192.0.2.1/24 dev away0', shell=True)

    def stop(self):
        if self.there:
            subprocess.check_call(['ip', 'link', 'del', 'away0'])


def takes_calls(port):
    try:
        with socket.create_connection((HOST, port), 1):
            return True
    except OSError:
        return False


class Gannetd:
    """A real one, with port 2049 and the lines of its exports."""

    def __init__(self, *lines, port=2049):
        shutil.rmtree('/run/state', ignore_errors=True)
        os.makedirs('/run/state', 0o700)
        args = ['./gannetd', '--foreground', '--no-rpcbind', '--rdma', 'off',
                '--state-dir', '/run/state', '--log-level', 'err', '--port',
                str(port)]
        for line in lines:
            args += ['--export', line]
        self.log = open('/run/log', 'w+')
        self.child = subprocess.Popen(args, stderr=self.log)
        end = time.monotonic() + 60
        while not takes_calls(port):
            if time.monotonic() > end or self.child.poll() is not None:
                self.log.seek(0)
                sys.exit('gannetd does not start: ' + self.log.read())
            time.sleep(0.05)

    def stop(self):
        self.child.terminate()
        self.child.wait(60)


def tree():
    shutil.rmtree('/run/e', ignore_errors=True)
    os.makedirs('/run/e/dir')
    os.makedirs('/run/e/closed/in')
    os.chmod('/run/e', 0o755)
    os.chmod('/run/e/closed', 0o700)
    with open('/run/e/file', 'w', encoding='ascii') as f:
        f.write('data')


def doctor(args, wrap, patience):
    return subprocess.run([*wrap, './gannet-nfs', 'doctor', '-t', patience, *args],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding='utf-8', errors='replace', check=False)


def row(what, parts, args, status, *sentences, wrap=()):
    """Makes the parts, and looks for the sentences: the first is at the end."""
    global failed
    args = [args] if isinstance(args, str) else args
    answers = False
    with contextlib.ExitStack() as stack:
        for part in parts:
            made = part()
            answers |= isinstance(made, Gannetd)
            stack.callback(made.stop)
            if not getattr(made, 'there', True):
                print('skip -', what)
                return
        # A server that answers has time to; what is silent is silent at once.
        done = doctor(args, wrap, '20' if answers else '2')
    last = done.stdout.rstrip('\n').rsplit('\n', 1)[-1]
    good = done.returncode == status and last.startswith(sentences[0]) and all(
        s in done.stdout for s in sentences[1:])
    print('ok -' if good else 'not ok -', what)
    if not good:
        failed += 1
        print('wanted', status, *sentences, sep='\n  ')
        print('got', done.returncode, done.stdout, sep='\n')


URL = HOST + ':/e'
GOOD = '/run/e *(rw,insecure,no_root_squash)'
NOT_THERE = 'To mend: start the NFS server on 127.0.0.1'


def find_rows():
    row('an unknown name', [], 'no-such-host.invalid:/e', 3,
        'To mend: make the name known: ')
    row('no network', [], '198.51.100.1:/e', 3,
        'To mend: mend the way to 198.51.100.1: ')
    row('a machine that is off', [Away], '192.0.2.9:/e', 3,
        'To mend: let TCP port 2049 of 192.0.2.9 through the firewall, or '
        'start the machine')
    row('no server at all', [], URL, 3, NOT_THERE + ', or name its port')
    row('an NFS port that drops', [lambda: Full(2049)], URL, 3,
        'To mend: let TCP port 2049 of 127.0.0.1 through the firewall')
    row('a server that hangs', [lambda: mute(2049)], URL, 3,
        'To mend: restart the NFS server on 127.0.0.1: it hangs')
    row('a web server that waits for a line at the port of NFS',
        [lambda: says(2049, b'HTTP/1.0 400 Bad Request\r\n\r\n')], URL, 3,
        'To mend: name the port of NFS: at TCP port 2049 of 127.0.0.1 is a '
        'web server')
    row('a web server that answers all at once',
        [lambda: says(2049, b'HTTP/1.1 400 Bad Request\r\n\r\n', True)], URL,
        3, 'To mend: name the port of NFS: at TCP port 2049 of 127.0.0.1 is '
        'a web server')
    row('another server that speaks first',
        [lambda: says(2049, b'SSH-2.0-OpenSSH_9.2\r\n', True)], URL, 3,
        'To mend: name the port of NFS: what is at port 2049 of 127.0.0.1 is '
        'no NFS server')
    row('a port that closes all connections', [lambda: closes(2049)], URL, 3,
        'To mend: name the port of NFS: ', 'the connection was closed at once')
    row('NFS version 2 alone', [lambda: server(versions={NFS: (2, 2)})], URL,
        3, 'To mend: have the server serve NFS version 3 (it has 2 to 2)')
    row('NFS version 4 alone', [lambda: server(versions={NFS: (4, 4)})], URL,
        3, 'To mend: have the server serve NFS version 3 (it has 4 to 4)')
    row('another program at the port of NFS',
        [lambda: server(programs=[NLM])], URL, 3,
        'To mend: name the port of NFS: what is at port 2049')


def rpcbind_rows():
    row('rpcbind names another port, rightly',
        [lambda: Gannetd(GOOD, port=12049),
         lambda: rpcbind({NFS: 12049, MOUNT: 12049})], HOST + ':/run/e', 0,
        'Mount with: mount -t nfs -o vers=3,proto=tcp,port=12049')
    row('a web server at 2049, and rpcbind names the port of NFS',
        [lambda: says(2049, b'HTTP/1.0 400 Bad\r\n\r\n'),
         lambda: Gannetd(GOOD, port=12049),
         lambda: rpcbind({NFS: 12049, MOUNT: 12049})], HOST + ':/run/e', 0,
        'Mount with: mount -t nfs -o vers=3,proto=tcp,port=12049')
    row('rpcbind names a port of NFS where nothing listens',
        [lambda: rpcbind({NFS: 12049, MOUNT: 12049})], URL, 3, NOT_THERE +
        ': its rpcbind names TCP port 12049 for it, where nothing listens')
    row('rpcbind names a port of NFS that drops',
        [lambda: rpcbind({NFS: 12049}), lambda: Full(12049)], URL, 3,
        'To mend: let TCP port 12049 of 127.0.0.1 through the firewall')
    row('rpcbind knows no NFS', [lambda: rpcbind({})], URL, 3, NOT_THERE +
        ': its rpcbind knows no NFS version 3 over TCP')
    row('a wrong port is given, and rpcbind names the right one',
        [lambda: Gannetd(GOOD), lambda: rpcbind({NFS: 2049, MOUNT: 2049})],
        'tcp://127.0.0.1:12049/run/e', 3,
        'To mend: name TCP port 2049 in place of 12049: ')
    row('rpcbind names a dead port of NFS, and 2049 answers',
        [lambda: Gannetd(GOOD), lambda: rpcbind({NFS: 12049, MOUNT: 2049})],
        HOST + ':/run/e', 0, 'Mount with: mount -t nfs -o vers=3,proto=tcp,'
        'port=2049', 'poor  rpcbind      names TCP port 12049 for NFS')
    row('rpcbind names a dead port of MOUNT',
        [lambda: server(programs=[NFS]),
         lambda: rpcbind({NFS: 2049, MOUNT: 12049})], URL, 3,
        'To mend: restart the MOUNT service (mountd) of 127.0.0.1: its '
        'rpcbind names TCP port 12049 for it, where nothing listens',
        'poor  rpcbind      names TCP port 12049 for MOUNT version 3: refused')
    row('rpcbind names a dead port of MOUNT, which is at 2049',
        [lambda: Gannetd(GOOD), lambda: rpcbind({NFS: 2049, MOUNT: 12049})],
        HOST + ':/run/e', 0, 'Mount with: mount -t nfs -o vers=3,proto=tcp,'
        'port=2049,mountport=2049', 'poor  rpcbind      names TCP port 12049')
    row('the port of MOUNT drops',
        [lambda: server(programs=[NFS]), lambda: Full(12049),
         lambda: rpcbind({NFS: 2049, MOUNT: 12049})], URL, 3,
        'To mend: let TCP port 12049 of 127.0.0.1, that of MOUNT, through '
        'the firewall')
    row('the port of rpcbind drops',
        [lambda: server(programs=[NFS]), lambda: Full(111)], URL, 3,
        'To mend: let TCP port 111 of 127.0.0.1, that of rpcbind, through '
        'the firewall, or name the port of MOUNT')
    row('the port of rpcbind drops, and MOUNT is at the port of NFS',
        [lambda: Gannetd(GOOD), lambda: Full(111)], HOST + ':/run/e', 0,
        'Mount with: mount -t nfs -o vers=3,proto=tcp,port=2049,mountport=2049')
    row('no rpcbind, and MOUNT is not at the port of NFS',
        [lambda: server(programs=[NFS])], URL, 3,
        'To mend: start the MOUNT service (mountd) of 127.0.0.1, or name its '
        'port: --mountport N')
    row('a lock manager that is away',
        [lambda: Gannetd(GOOD),
         lambda: rpcbind({NFS: 2049, MOUNT: 2049, NLM: 12049})],
        HOST + ':/run/e', 0, 'Mount with: ',
        'poor  locks        the lock manager at TCP port 12049: refused: '
        'nothing listens there; locks of files will hang')


def mount_rows():
    named = lambda: rpcbind({NFS: 2049, MOUNT: 12049})
    nfs = lambda: server(programs=[NFS])
    row('a MOUNT service that hangs', [nfs, named, lambda: mute(12049)], URL,
        3, 'To mend: restart the MOUNT service (mountd) of 127.0.0.1: it hangs')
    row('MOUNT without version 3',
        [nfs, named, lambda: server(12049, versions={MOUNT: (1, 2)})], URL, 3,
        'To mend: have the MOUNT service (mountd) of 127.0.0.1 serve version 3 '
        '(it has 1 to 2)')
    row('a web server at the port of MOUNT',
        [nfs, named, lambda: says(12049, b'HTTP/1.0 400 Bad\r\n\r\n')], URL, 3,
        'To mend: restart the MOUNT service (mountd) of 127.0.0.1: its '
        'rpcbind names TCP port 12049 for it, where something else answers')
    row('a file system that is away when it is mounted',
        [lambda: server(mnt=None)], URL, 3,
        'To mend: wait, and try again; if it goes on, find out in the log of '
        '127.0.0.1 why the file system of /e does not answer')
    row('MOUNT that wants another flavor', [lambda: server(mnt='denied')], URL,
        3, 'To mend: let 127.0.0.1 take AUTH_SYS for /e (sec=sys)')
    row('an export for Kerberos', [lambda: server(flavors=(390005, 390003))],
        URL, 1, 'To mend: mount it with Kerberos: mount -t nfs -o vers=3,'
        'sec=krb5p, for which this machine needs a key',
        'only sec=krb5p:krb5 is taken, and calls from here have sec=sys')
    row('an export whose directory is missing', [lambda: server(mnt=NOENT)],
        URL, 1, 'To mend: make the directory /e on 127.0.0.1: ')
    row('an export whose directory is a file', [lambda: server(mnt=NOTDIR)],
        URL, 1, 'To mend: name a directory: /e of 127.0.0.1 is none')
    row('a server that fails to mount', [lambda: server(mnt=FAULT)], URL, 1,
        "To mend: find out in the log of 127.0.0.1 why it can't mount /e "
        '(MNT3ERR_SERVERFAULT)')
    row('what is not exported, where that is access denied',
        [lambda: server(mnt=ACCES, listed=[('/other', '')])], URL, 1,
        'To mend: name a directory that is there and exported: ')
    row('what is not exported', [lambda: Gannetd(GOOD)], URL, 1,
        'To mend: name a directory that is there and exported: ',
        '/run/e (which is not above /e)')
    row('an export for other machines',
        [lambda: Gannetd('/run/e 192.0.2.1(rw)')], HOST + ':/run/e', 1,
        'To mend: export /run/e to this machine: see the exports file of ',
        'exports      /run/e to 192.0.2.1')
    row('handles that NFS does not know', [lambda: server(nfs=STALE)], URL, 1,
        'To mend: restart the NFS server and the MOUNT service of 127.0.0.1: ')
    row('a root that can not be read', [lambda: server(nfs=IO)], URL, 1,
        'To mend: find out in the log of 127.0.0.1 why it mounts /e and then '
        'fails it', 'NFS3ERR_IO')
    row('a root whose file system is away', [lambda: server(nfs=JUKEBOX)], URL,
        1, 'To mend: wait, and try again; if it goes on, find out in the log')
    row('NFS that wants another flavor', [lambda: server(nfs='denied')], URL,
        1, 'To mend: let 127.0.0.1 take AUTH_SYS for /e (sec=sys)')


def path_rows():
    open_to = lambda options: lambda: Gannetd('/run/e *(%s)' % options)
    free = open_to('rw,insecure,no_root_squash')
    at = HOST + ':/run/e'
    row('nothing is wrong', [free], at, 0, 'Mount with: ',
        'ok    users        user 0 may read and write /run/e')
    row('a host alone', [free], HOST, 0,
        'Next: gannet-nfs doctor 127.0.0.1:/run/e',
        'exports      /run/e to ')
    row('a host alone, and a port', [free],
        'tcp://127.0.0.1:2049?mountport=2049', 0, 'Next: gannet-nfs doctor '
        'tcp://127.0.0.1:2049/run/e?mountport=2049')
    row('a host alone that exports nothing',
        [lambda: server(mnt=NOENT, listed=[])], HOST, 1,
        'To mend: export a directory on 127.0.0.1: it exports nothing')
    row('a host alone whose export means more than itself to a shell',
        [lambda: Gannetd('mem:/e;x *(rw,insecure)')], HOST, 0,
        'Next: gannet-nfs exports 127.0.0.1')
    row('a path that is a file', [free], at + '/file', 1,
        'To mend: name the directory that /run/e/file is in')
    row('a path below a file', [free], at + '/file/x', 1,
        'To mend: name a path that is there, below /run/e')
    row('a path that is not there', [free], at + '/missing/deep', 1,
        'To mend: name a path that is there, below /run/e')
    row('a read-only export', [open_to('ro,insecure,no_root_squash')], at, 0,
        'Mount with: ', 'users        /run/e is read-only: ')
    row('RDMA that is not served', [free],
        'rdma+iwarp://127.0.0.1/run/e?mountport=2049', 3,
        'To mend: have 127.0.0.1 serve NFS over rdma+iwarp at port 20049')


def user_rows():
    at = HOST + ':/run/e'
    squash = lambda: Gannetd('/run/e *(rw,insecure)')
    row('a squashed root that may not write', [squash], at, 0, 'Mount with: ',
        'poor  users        root may read /run/e and not write there: it is '
        'squashed (root_squash)')
    os.chmod('/run/e', 0o700)
    row('a squashed root that may not read', [squash], at, 1,
        'To mend: give the export of /run/e no_root_squash, or let others '
        'read it: root of this machine is squashed there (root_squash)')
    os.chmod('/run/e', 0o755)
    row('a squashed root that may not search', [squash], at + '/closed/in', 1,
        'To mend: give the export of /run/e/closed/in no_root_squash')
    row('a user who may not read', [squash], ['-u', '77', at + '/closed'], 1,
        'To mend: let user 77 read /run/e/closed of 127.0.0.1: it has mode '
        '0700 and belongs to user 0')
    row('a user who may not search', [squash], ['-u', '77', at + '/closed/in'],
        1, 'To mend: let user 77 search the directories above ')
    row('a user who may not write', [squash], ['-u', '77', at], 0,
        'Mount with: ', 'user 77 may read /run/e and not write there')
    row('an export for low ports, and a user',
        [lambda: Gannetd('/run/e *(rw,secure)')], at, 1, 'To mend: ',
        '`insecure`', wrap=['setpriv', '--reuid', '65534', '--clear-groups'])


def ls_finds_the_port():
    global failed
    for what, parts in [
            ('rightly', []),
            ('and a web server is at 2049',
             [lambda: says(2049, b'HTTP/1.0 400 Bad\r\n\r\n')])]:
        with contextlib.ExitStack() as stack:
            for part in [lambda: Gannetd(GOOD, port=12049), *parts,
                         lambda: rpcbind({NFS: 12049, MOUNT: 12049})]:
                stack.callback(part().stop)
            done = subprocess.run(['./gannet-nfs', 'ls', HOST + ':/run/e'],
                                  stdout=subprocess.PIPE, encoding='utf-8',
                                  check=False)
        good = done.stdout == 'closed\ndir\nfile\n'
        print('ok -' if good else 'not ok -', 'ls: rpcbind names another port,',
              what)
        failed += not good


tree()
find_rows()
rpcbind_rows()
mount_rows()
path_rows()
ls_finds_the_port()
# All users of this machine are there, not only root of a name space.
with open('/proc/self/uid_map', encoding='ascii') as ids:
    if int(ids.read().split()[2]) > 65536:
        user_rows()
sys.exit(failed > 0)
