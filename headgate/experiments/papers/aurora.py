"""Aurora's figures: 3, 5 to 9, 11, 13, 14, and a statement of §5.3 without a figure."""

from headgate.experiments.papers.aurora_batching import BATCHING, DEPTH
from headgate.experiments.papers.aurora_qos import QOS
from headgate.experiments.papers.aurora_trains import TRAINS

AURORA = (*BATCHING, *TRAINS, DEPTH, *QOS)
