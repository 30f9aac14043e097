"""Seeds of tests that draw at random."""

import os


def drawing_seed() -> int:
    """Return the seed for random choices: HEADGATE_SEED, or 1. It is printed if a test fails."""
    seed = int(os.environ.get("HEADGATE_SEED", "1"))
    print(f"HEADGATE_SEED={seed}")
    return seed
