"""What a model has learnt: weights of interactions, the strongest of them, plots."""

from polyfm.inspection.plots import plot_interactions, plot_learning_curves
from polyfm.inspection.strongest import Interaction, Interactions, strongest_interactions
from polyfm.inspection.weights import interaction_matrix, interaction_weight

__all__ = [
    "Interaction",
    "Interactions",
    "interaction_matrix",
    "interaction_weight",
    "plot_interactions",
    "plot_learning_curves",
    "strongest_interactions",
]
