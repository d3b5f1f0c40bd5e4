# SPDX-License-Identifier: BSD-2-Clause
"""Peers that do a server no good: they connect without end, read slowly, say
half of something, or vanish.  Each function works until its time is over."""
import os
import select
import socket
import struct
import time

NFS, MOUNT = 100003, 100005
MNT, CREATE, WRITE, READ = 1, 8, 7, 6
MIB = 1 << 20


def opaque(data):
    return struct.pack('>I', len(data)) + data + b'\0' * (-len(data) % 4)


def call(prog, proc, args, xid=1):
    """A record with a call of version 3, as uid 0."""
    auth = struct.pack('>I', 0) + opaque(b'load') + struct.pack('>III', 0, 0, 0)
    body = (struct.pack('>IIIIII', xid, 0, 2, prog, 3, proc) +
            struct.pack('>I', 1) + opaque(auth) + struct.pack('>II', 0, 0) +
            args)
    return struct.pack('>I', 0x80000000 | len(body)) + body


def receive(sock, size):
    data = b''
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise ConnectionError('closed')
        data += more
    return data


def answer(sock):
    """The results of the next reply."""
    size = struct.unpack('>I', receive(sock, 4))[0] & 0x7fffffff
    return receive(sock, size)[24:]


def mounted(address, path):
    """A connection, and the handle of the export's root."""
    sock = socket.create_connection(address, timeout=30)
    sock.sendall(call(MOUNT, MNT, opaque(path.encode())))
    result = answer(sock)
    if struct.unpack('>I', result[:4])[0]:
        raise RuntimeError('MNT failed')
    size = struct.unpack('>I', result[4:8])[0]
    return sock, result[8:8 + size]


def big_file(address, path, name):
    """The handle of a new file of 1 MiB."""
    sock, root = mounted(address, path)
    # UNCHECKED, with no attribute set.
    sock.sendall(call(NFS, CREATE, opaque(root) + opaque(name) +
                      struct.pack('>7I', 0, 0, 0, 0, 0, 0, 0)))
    result = answer(sock)
    if struct.unpack('>I', result[:4])[0]:
        raise RuntimeError('CREATE failed')
    size = struct.unpack('>I', result[8:12])[0]
    handle = result[12:12 + size]
    sock.sendall(call(NFS, WRITE, opaque(handle) +
                      struct.pack('>QII', 0, MIB, 2) + opaque(b'x' * MIB)))
    if struct.unpack('>I', answer(sock)[:4])[0]:
        raise RuntimeError('WRITE failed')
    sock.close()
    return handle


def ask_much(address, handle, calls):
    """A connection that has asked for @calls MiB and read nothing."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.settimeout(30)
    sock.connect(address)
    args = opaque(handle) + struct.pack('>QI', 0, MIB)
    try:
        sock.sendall(b''.join(call(NFS, READ, args, i + 1)
                              for i in range(calls)))
    except OSError:
        pass
    return sock


def slow_readers(address, handle, seconds, count=150):
    """Ask for megabytes, and take some kilobytes a second."""
    end = time.time() + seconds
    socks = [ask_much(address, handle, 16) for _ in range(count)]
    while time.time() < end:
        for sock in socks:
            sock.setblocking(False)
            try:
                sock.recv(512)
            except OSError:
                pass
        time.sleep(.1)
    for sock in socks:
        sock.close()


def storm(address, seconds, number):
    """Connects and closes as fast as it can; every fourth with a reset, every
    third says something first.  Returns how often."""
    end = time.time() + seconds
    done = 0
    while time.time() < end:
        sock = socket.socket()
        try:
            sock.bind((f'127.0.{1 + number}.{1 + done % 200}', 0))
            sock.settimeout(5)
            sock.connect(address)
            if done % 3 == 0:
                sock.send(call(NFS, 0, b''))
            if done % 4 == 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                struct.pack('ii', 1, 0))
        except OSError:
            pass
        sock.close()
        done += 1
    return done


def half_open(address, seconds, count=300):
    """Connections that say half of something, or nothing at all."""
    end = time.time() + seconds
    socks = []
    for i in range(count):
        try:
            sock = socket.create_connection(address, timeout=10)
            sock.send([b'', b'\x80\0', b'MPA ID Req', b'\x80\x10\0\0abcd'][i % 4])
            socks.append(sock)
        except OSError:
            pass
    while time.time() < end:
        time.sleep(.1)
    for sock in socks:
        sock.close()


def then_silence(address, iwarp, handle, count=100):
    """Run in a namespace whose link goes down: connections with replies that
    will never arrive.  Says when it is ready, and ends when told to."""
    socks = [ask_much(address, handle, 4) for _ in range(count)]
    for _ in range(count):
        try:
            sock = socket.create_connection(iwarp, timeout=10)
            sock.send(b'MPA ID Req Frame\0\1\0\0')
            socks.append(sock)
        except OSError:
            pass
    os.write(1, b'ready\n')
    select.select([0], [], [])
