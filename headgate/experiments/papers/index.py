"""All experiments by id, in the order of the papers and their figures."""

from headgate.experiments.papers.bz import BZ
from headgate.experiments.papers.sharaf import SHARAF

EXPERIMENTS = {experiment.id: experiment for experiment in (*SHARAF, *BZ)}
