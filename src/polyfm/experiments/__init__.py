"""Experiments on real data, run by ``polyfm reproduce NAME``.

An experiment is a function without required arguments that returns a :class:`Report`. A new one is
a function in a module here and one line in ``EXPERIMENTS``.
"""

from polyfm.experiments.budgets import pn_regression
from polyfm.experiments.clicks import adult, criteo, frappe
from polyfm.experiments.cost import hofm_cost
from polyfm.experiments.descent import ratings_descent
from polyfm.experiments.hierarchy import shfm
from polyfm.experiments.hindsight import regret_curves
from polyfm.experiments.links import hofm_links
from polyfm.experiments.networks import pn_recommender, pn_weights
from polyfm.experiments.online_clicks import pqr_ctr
from polyfm.experiments.projective import pqr_ratings
from polyfm.experiments.ratings import movielens_1m, movielens_100k
from polyfm.experiments.report import Report
from polyfm.experiments.solvers import hofm_solvers
from polyfm.experiments.unseen import unseen_interactions

EXPERIMENTS = {
    "movielens-100k": movielens_100k,
    "movielens-1m": movielens_1m,
    "ratings-descent": ratings_descent,
    "adult": adult,
    "frappe": frappe,
    "criteo": criteo,
    "hofm-links": hofm_links,
    "hofm-solvers": hofm_solvers,
    "hofm-cost": hofm_cost,
    "pn-weights": pn_weights,
    "pn-recommender": pn_recommender,
    "pn-regression": pn_regression,
    "shfm": shfm,
    "unseen-interactions": unseen_interactions,
    "pqr-ratings": pqr_ratings,
    "pqr-ctr": pqr_ctr,
    "regret": regret_curves,
}
"""Experiments by the name users give."""

__all__ = ["EXPERIMENTS", "Report"]
