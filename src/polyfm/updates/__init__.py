"""Update rules of stochastic learning. One file and one line here for each."""

from polyfm.updates.adagrad import AdaGrad
from polyfm.updates.ftrl import FTRLPower, FTRLProximal
from polyfm.updates.sgd import SGD

__all__ = ["SGD", "AdaGrad", "FTRLPower", "FTRLProximal"]
