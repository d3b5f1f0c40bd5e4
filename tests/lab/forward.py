#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Passes connections on: forward.py HOST PORT N, from N ports of 127.0.0.1, the
first of which is PORT, to the same ports of HOST."""
import asyncio
import sys


async def copy(reader, writer):
    """Until one side ends."""
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()


def passer(host, port):
    """What is done with a connection to @port."""
    async def accept(reader, writer):
        try:
            to_reader, to_writer = await asyncio.open_connection(host, port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, to_writer), copy(to_reader, writer))
    return accept


async def main():
    """Listens, and says so."""
    host, first, many = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for port in range(first, first + many):
        await asyncio.start_server(passer(host, port), '127.0.0.1', port)
    print('ready', flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
