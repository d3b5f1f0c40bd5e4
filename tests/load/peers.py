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


def breaking(address, path, times):
    """Creates a file on a connection of its own, and resets it, @times."""
    sock, root = mounted(address, path.decode())
    hard = struct.pack('ii', 1, 0)
    for i in range(times):
        sock.sendall(call(NFS, CREATE, opaque(root) + opaque(b'broken') +
                          struct.pack('>7I', 0, 0, 0, 0, 0, 0, 0), i))
        answer(sock)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, hard)
        sock.close()
        sock = socket.create_connection(address, timeout=30)
    sock.close()


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


def shy(address, source):
    """A connection that takes little at a time."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.settimeout(30)
    if source:
        sock.bind((source, 0))
    sock.connect(address)
    return sock


def ask_much(address, handle, calls, source=None):
    """A connection that has asked for @calls MiB and read nothing."""
    sock = shy(address, source)
    args = opaque(handle) + struct.pack('>QI', 0, MIB)
    try:
        sock.sendall(b''.join(call(NFS, READ, args, i + 1)
                              for i in range(calls)))
    except OSError:
        pass
    return sock


# A Request of MPA without CRCs, with the private data of RFC 8797.
MPA_REQUEST = (b'MPA ID Req Frame\x10\2\0\x0c\0\x80\0\x80'
               b'\xf6\xab\x0e\x18\1\1\3\3')
MPA_CRC = 0x40


def send_message(sock, number, payload):
    """An RDMAP Send of one FPDU (RFC 5040, 5041, 5044)."""
    fpdu = struct.pack('>HBBIIII', 18 + len(payload), 0x41, 0x43, 0, 0,
                       number, 0) + payload
    sock.sendall(fpdu + b'\0' * (-len(fpdu) % 4) + b'\0' * 4)


def iwarp_connect(address, source=None):
    """Such a connection of RPC-over-RDMA."""
    sock = shy(address, source)
    sock.sendall(MPA_REQUEST)
    if receive(sock, 32)[16] & MPA_CRC:
        raise RuntimeError('the server wants CRCs')
    return sock


def rdma_head(xid, *lists):
    """Of an RDMA_MSG, which asks for 128 credits (RFC 8166 section 4.1)."""
    return struct.pack('>4I', xid, 1, 128, 0) + b''.join(lists)


NO_LIST = struct.pack('>I', 0)


def iwarp_ask_much(address, handle, calls, source=None):
    """As ask_much(), by READs with Write chunks."""
    sock = iwarp_connect(address, source)
    args = opaque(handle) + struct.pack('>QI', 0, MIB)
    chunk = struct.pack('>4IQI', 1, 1, 0x1234, MIB, 0, 0)
    try:
        for i in range(1, calls + 1):
            send_message(sock, i, rdma_head(i, NO_LIST, chunk, NO_LIST) +
                         call(NFS, READ, args, i)[4:])
    except OSError:
        pass
    return sock


def iwarp_offer(address, handle, calls):
    """A connection that offers @calls MiB by WRITEs with Read chunks, and
    answers none of the RDMA Reads."""
    sock = iwarp_connect(address)
    args = opaque(handle) + struct.pack('>QIII', 0, MIB, 2, MIB)
    for i in range(1, calls + 1):
        message = call(NFS, WRITE, args, i)[4:]
        chunk = struct.pack('>4IQI', 1, len(message), 0x1234, MIB, 0, 0)
        send_message(sock, i, rdma_head(i, chunk, NO_LIST, NO_LIST) + message)
    # Its Reads are asked for: there is nothing that TCP would send again.
    receive(sock, 20)
    return sock


def slow_readers(ask, address, handle, seconds, count, network):
    """Ask for megabytes, from many addresses, and take some kilobytes a
    second."""
    end = time.time() + seconds
    socks = [ask(address, handle, 16, f'127.0.{network}.{1 + i % 100}')
             for i in range(count)]
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
    will never arrive, with Reads that will never be answered, and some that
    have not finished asking.  Says when it is ready, and ends when told to."""
    socks = [ask_much(address, handle, 4) for _ in range(count)]
    for i in range(count):
        try:
            if i % 4 == 0:
                sock = socket.create_connection(iwarp, timeout=10)
                sock.send(b'MPA ID Req Frame\0\1\0\0')
            elif i % 4 == 1:
                sock = iwarp_offer(iwarp, handle, 2)
            else:
                sock = iwarp_ask_much(iwarp, handle, 2)
            socks.append(sock)
        except OSError:
            pass
    os.write(1, b'ready %d\n' % len(socks))
    select.select([0], [], [])
