"""
The table of Figure 1: from an event log to a feature matrix
============================================================

Seven ratings, and five blocks of features for each: who rated, what, which films this person
rated at all (normalised), when, and which film they rated just before.  The log is that of
Figure 1 in S. Rendle, "Factorization Machines", ICDM 2010.
"""  # noqa: D205, D400

from polyfm.data import OneHotFieldEncoder

# Time is in months since January 2009; nobody has rated anything before their first event.
events = {
    "user": ["A", "A", "A", "B", "B", "C", "C"],
    "item": ["TI", "NH", "SW", "SW", "ST", "TI", "SW"],
    "rated": [{"TI", "NH", "SW"}] * 3 + [{"SW", "ST"}] * 2 + [{"TI", "SW"}] * 2,
    "time": [13.0, 14.0, 16.0, 5.0, 8.0, 9.0, 12.0],
    "last": [None, "TI", "NH", None, "SW", None, "TI"],
}
y = [5, 3, 1, 4, 5, 1, 5]

# %%
# Text becomes one-hot, sets become multi-hot of sum 1, numbers stay, and an empty "last" gets no
# entry.  That is all.

encoder = OneHotFieldEncoder(missing="ignore")
X = encoder.fit_transform(events)

# %%
# Every output column knows its name and its field.

if __name__ == "__main__":
    names = encoder.get_feature_names_out()
    print(" ".join(f"{name:>8}" for name in names), "       y")
    for row, target in zip(X.toarray(), y, strict=True):
        print(" ".join(f"{value:8.2f}" for value in row), f"{target:8d}")
    print("fields:", dict(enumerate(encoder.field_names_)), encoder.fields_)
