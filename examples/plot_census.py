"""
Which features act together? The census of 1994
===============================================

Factorization machines of order 1, 2 and 3 predict from 14 columns whether a person earns more than
50,000 dollars a year, and tell which combinations of columns speak for it.
"""  # noqa: D205, D400

from sklearn.metrics import log_loss

from polyfm import FMClassifier
from polyfm.datasets import load_adult
from polyfm.inspection import plot_interactions, plot_learning_curves, strongest_interactions

adult = load_adult()
X_train, X_test, y_train, y_test = adult.split()

# %%
# Order 1 is logistic regression, order 2 adds pairs, order 3 triples.

models = {
    f"order {order}": FMClassifier(order=order, random_state=0).fit(X_train, y_train)
    for order in (1, 2, 3)
}
for name, model in models.items():
    print(f"{name}: test log loss {log_loss(y_test, model.predict_proba(X_test)):.4f}")

# %%
# Each epoch is judged by rows that were held out; the parameters of the best one are kept.

plot_learning_curves(models)

# %%
# The strongest pairs, among those that at least 300 persons have.  A weight is in log-odds.

names = {"fields": adult.fields, "feature_names": adult.feature_names}
print(strongest_interactions(models["order 2"], 8, X=X_train, min_count=300, **names))

# %%
# All pairs of two columns: how much being married, or a wife, speaks for a high income depends on
# the two together.  Values of one column exclude each other: their weights play no part.

wanted = ("marital-status=", "sex=")
features = [name for name in adult.feature_names if name.startswith(wanted)]
plot_interactions(models["order 2"], features, feature_names=list(adult.feature_names))
