"""The planted bugs of the chaos bench, which its checks must find: one patch file each, and a list."""

from dataclasses import dataclass

import yaml
from local_stack import LOCAL

FOLDER = LOCAL / "benches" / "chaos" / "mutants"


@dataclass
class Mutant:
    # The invariant that must find it.
    invariant: str
    # The faults of the run that finds it, as in --faults.
    faults: str
    about: str


MUTANTS = {name: Mutant(**fields) for name, fields in yaml.safe_load((FOLDER / "mutants.yaml").read_text()).items()}
