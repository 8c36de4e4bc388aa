"""Every kind of fault, by name."""

import chaos_broker_faults
import chaos_cluster_faults
import chaos_compound_faults
import chaos_database_faults
import chaos_network_faults
import chaos_provider_faults
import chaos_service_faults
import chaos_topology_faults
from chaos_fault import Fault

FAULTS: list[Fault] = [
    *chaos_service_faults.FAULTS,
    *chaos_broker_faults.FAULTS,
    *chaos_topology_faults.FAULTS,
    *chaos_cluster_faults.FAULTS,
    *chaos_database_faults.FAULTS,
    *chaos_network_faults.FAULTS,
    *chaos_provider_faults.FAULTS,
    *chaos_compound_faults.FAULTS,
]


# Of each pair of one-way partitions, a run of `all` has the one that its seed chooses: both wait for the same time limit.
PAIRS = [[f"network-{server}-{lost}-lost" for lost in ("answers", "requests")] for server in ("broker", "providers")]


def select(names: str, seed: int = 0) -> list[Fault]:
    """The faults of `gate`, of `all`, or of names with commas between them."""
    if names == "all":
        left_out = {pair[(seed + number) % 2] for number, pair in enumerate(PAIRS)}
        return [fault for fault in FAULTS if fault.name not in left_out]
    if names == "gate":
        return [fault for fault in FAULTS if fault.gate]
    known = {fault.name: fault for fault in FAULTS}
    unknown = [name for name in names.split(",") if name not in known]
    if unknown:
        raise ValueError(f"unknown faults: {', '.join(unknown)}; known: {', '.join(known)}")
    return [known[name] for name in names.split(",")]
