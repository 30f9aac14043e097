"""The scheduling policies, one small module each. Importing this package registers all of them.

In: the unit table and the time. Out: plans.
Never starts a call, reads a clock, opens a file or draws an unseeded random number.
"""

from headgate.policies import (
    amos,
    bsd,
    chain,
    class_baselines,
    cqc,
    edf,
    fas,
    forks,
    mss,
    mtiq,
    oracle,
    qos,
    qos_bucketed,
    rate,
    round_robin,
    sources_last,
    superbox,
    threshold,
    wait,
)
from headgate.policies.fidelity import Fidelity, fidelity
from headgate.policies.interface import Foresight, Policy, Selection, State
from headgate.policies.priority import priority
from headgate.policies.registry import (
    Engine,
    PolicyEntry,
    policies,
    policy_entry,
    policy_named,
    register,
)

__all__ = [
    "Engine",
    "Fidelity",
    "Foresight",
    "Policy",
    "PolicyEntry",
    "Selection",
    "State",
    "amos",
    "bsd",
    "chain",
    "class_baselines",
    "cqc",
    "edf",
    "fas",
    "fidelity",
    "forks",
    "mss",
    "mtiq",
    "oracle",
    "policies",
    "policy_entry",
    "policy_named",
    "priority",
    "qos",
    "qos_bucketed",
    "rate",
    "register",
    "round_robin",
    "sources_last",
    "superbox",
    "threshold",
    "wait",
]
