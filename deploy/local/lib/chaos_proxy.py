"""A TCP proxy that disturbs the connections between services, broker, database and providers.

    chaos_proxy.py ROUTES CONTROL-PORT

ROUTES is a JSON file: {"NAME": {"listen": PORT, "to": PORT}}. All ports are on loopback. The control port takes one
JSON object per line, and answers each with one:

    {"disturb": [NAME, …], "with": {…}}    disturbs current and new connections; {} ends it
    {"reset": [NAME, …]}                   resets current connections (RST)
    {"count": true}                        returns the open connections of each route

Members of `with`:

    delay, jitter     seconds added to each direction, and the range around it
    stall_share       the share of segments that arrive late, like a lost segment that is sent again
    stall             seconds that such a segment is late
    hold              "to", "from" or "both": data to the server, from it, or both, waits until the end
    rate              bytes a second in each direction
    cut_after         resets a connection after this many bytes in both directions
    refuse            true: resets new connections
"""

import asyncio
import json
import random
import socket
import struct
import sys
import time

SEGMENT = 16_384


class Route:
    """One listening port, its connections and their disturbance."""

    def __init__(self, name: str, listen: int, to: int):
        self.name, self.listen, self.to = name, listen, to
        self.connections: set[Connection] = set()
        self.disturbance: dict = {}
        self.changed = asyncio.Event()
        self.server: asyncio.Server | None = None

    async def start(self) -> None:
        self.server = await asyncio.start_server(self._accept, "127.0.0.1", self.listen, limit=SEGMENT)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(self, reader, writer)
        self.connections.add(connection)
        try:
            await connection.serve()
        except ConnectionRefusedError:
            connection.reset()
            await self._refuse()
        except OSError:
            connection.reset()
        finally:
            self.connections.discard(connection)

    async def _refuse(self) -> None:
        """Closes the port while the server's port is closed, so that clients are refused as by the server."""
        server, self.server = self.server, None
        if server is None:
            return
        server.close()
        while True:
            await asyncio.sleep(0.05)
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.to)
            except OSError:
                continue
            writer.close()
            return await self.start()

    def disturb(self, disturbance: dict) -> None:
        self.disturbance = disturbance
        self.changed.set()
        self.changed = asyncio.Event()

    def reset(self) -> None:
        for connection in list(self.connections):
            connection.reset()


class Connection:
    """A client's connection and the one to the server."""

    def __init__(self, route: Route, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.route, self.client = route, (reader, writer)
        self.server: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.carried = 0

    async def serve(self) -> None:
        if self.route.disturbance.get("refuse"):
            self.reset()
            return
        self.server = await asyncio.open_connection("127.0.0.1", self.route.to, limit=SEGMENT)
        to = asyncio.create_task(self._carry("to", self.client[0], self.server[1]))
        back = asyncio.create_task(self._carry("from", self.server[0], self.client[1]))
        done, rest = await asyncio.wait({to, back}, return_when=asyncio.FIRST_EXCEPTION)
        for task in rest:
            task.cancel()
        if any(task.exception() for task in done):
            self.reset()
        for _, writer in (self.client, self.server):
            writer.close()

    def reset(self) -> None:
        """Ends both connections with RST."""
        for pair in (self.client, self.server):
            if pair is None:
                continue
            transport = pair[1].transport
            held = transport.get_extra_info("socket")
            if held is not None and held.fileno() >= 0:
                held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            transport.abort()

    async def _carry(self, direction: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carries one direction to its end. Keeps the order of the bytes, whatever the delays are."""
        queue: asyncio.Queue = asyncio.Queue(maxsize=64)
        sender = asyncio.create_task(self._send(queue, direction, writer))
        try:
            due = 0.0
            while data := await reader.read(SEGMENT):
                due = max(due, time.monotonic() + self._delay())
                await self._put(queue, (due, data), sender)
            await self._put(queue, (due, b""), sender)
            await sender
        finally:
            sender.cancel()

    async def _put(self, queue: asyncio.Queue, item, sender: asyncio.Task) -> None:
        put = asyncio.create_task(queue.put(item))
        await asyncio.wait({put, sender}, return_when=asyncio.FIRST_COMPLETED)
        if sender.done():
            put.cancel()
            await sender

    def _delay(self) -> float:
        disturbance = self.route.disturbance
        delay = disturbance.get("delay", 0.0)
        if delay:
            delay += random.uniform(-1, 1) * disturbance.get("jitter", 0.0)
        if random.random() < disturbance.get("stall_share", 0.0):
            delay += disturbance.get("stall", 0.2)
        return max(0.0, delay)

    async def _send(self, queue: asyncio.Queue, direction: str, writer: asyncio.StreamWriter) -> None:
        while True:
            due, data = await queue.get()
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            while self.route.disturbance.get("hold") in (direction, "both"):
                await self.route.changed.wait()
            if not data:
                writer.write_eof()
                return
            writer.write(data)
            await writer.drain()
            if rate := self.route.disturbance.get("rate"):
                await asyncio.sleep(len(data) / rate)
            self.carried += len(data)
            limit = self.route.disturbance.get("cut_after")
            if limit and self.carried > limit:
                raise ConnectionResetError("cut")


class Control:
    def __init__(self, routes: dict[str, Route]):
        self.routes = routes

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            try:
                answer = self.answer(json.loads(line))
            except (ValueError, KeyError) as mistake:
                answer = {"error": repr(mistake)}
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()

    def answer(self, order: dict) -> dict:
        match order:
            case {"disturb": names, "with": disturbance}:
                for route in [self.routes[name] for name in names]:
                    route.disturb(disturbance)
            case {"reset": names}:
                for route in [self.routes[name] for name in names]:
                    route.reset()
            case {"count": True}:
                return {name: len(route.connections) for name, route in self.routes.items()}
            case _:
                return {"error": "unknown order"}
        return {}


async def main(path: str, control_port: int) -> None:
    with open(path) as file:
        routes = {name: Route(name, **ports) for name, ports in json.load(file).items()}
    for route in routes.values():
        await route.start()
    server = await asyncio.start_server(Control(routes).serve, "127.0.0.1", control_port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
