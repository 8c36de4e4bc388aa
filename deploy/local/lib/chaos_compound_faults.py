"""Several faults at once, healed in a random order."""

import time

import chaos_broker_faults
import chaos_database_faults
import chaos_network_faults
from chaos_fault import CONNECTION_LOST, Fault


class Compound(Fault):
    """Broker, database and providers away at the same time."""

    name = "broker-database-and-providers-away"
    numbers = (68,)
    hold = 10
    recovery = 300
    signals = (CONNECTION_LOST, chaos_database_faults.UNREACHABLE)

    def __init__(self):
        self.parts = [
            chaos_broker_faults.Killed(), chaos_database_faults.RestartedFast(),
            chaos_network_faults.Refused("providers"),
        ]

    def begin(self, stack, random):
        for part in self.parts:
            part.begin(stack, random)
        self.extra_pushes = sum(part.extra_pushes for part in self.parts)
        random.shuffle(self.parts)
        return {"healed": [part.name for part in self.parts]}

    def end(self, stack):
        for part in self.parts:
            part.end(stack)
            time.sleep(2)


FAULTS: list[Fault] = [Compound()]
