"""All experiments by id, in the order of the papers and their figures."""

from headgate.experiments.papers.amos import AMOS
from headgate.experiments.papers.aurora import AURORA
from headgate.experiments.papers.bz import BZ
from headgate.experiments.papers.cqc import CQC
from headgate.experiments.papers.sharaf import SHARAF

EXPERIMENTS = {experiment.id: experiment for experiment in (*AURORA, *AMOS, *CQC, *SHARAF, *BZ)}
