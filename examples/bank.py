# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # A bank's pipeline, from a table to a page for the customer
#
# Open it as a notebook (`jupytext --to notebook bank.py`) or run it as it is. Needs: pip install 'ifonly[sklearn,plot]'

# %%
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ifonly import Explainer, ProbabilityTarget, Schema

# %% [markdown]
# ## The table, as it comes: an identifier, a date, amounts, text

# %%
rng = np.random.default_rng(7)
n = 500
table = pd.DataFrame({
    "Income": rng.gamma(6.0, 900.0, n).round(2),
    "Debt": rng.gamma(2.0, 4000.0, n).round(2),
    "Months employed": rng.integers(0, 240, n),
    "Housing": rng.choice(["rent", "own", "with family"], n),
    "Opened": pd.date_range("2019-01-01", periods=n, freq="D"),
}, index=pd.Index([f"C{k:05d}" for k in range(n)], name="Customer"))  # fmt: skip
chance = table["Income"] / 900 - table["Debt"] / 2500 + table["Months employed"] / 60 + (table["Housing"] == "own")
approved = (chance + rng.normal(0, 1.5, n)) > 5.0

# %% [markdown]
# ## What a row is: proposed from the data, then said in the bank's words

# %%
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    schema = Schema.infer(table)
print(said[0].message)
cents = (replace(schema[name], step=0.01) for name in ("Income", "Debt"))
schema = (
    schema.replace(*cents)
    .labelled(
        {"Income": "monthly income", "Debt": "outstanding debt", "Months employed": "time with your employer"},
        units={"Income": "€", "Debt": "€", "Months employed": "months"},
    )
    .with_rules("Housing is fixed", "Months employed only goes up", "Debt only goes down")
)
schema

# %% [markdown]
# ## The model, as it is deployed

# %%
features = list(schema.names)
pipeline = make_pipeline(
    ColumnTransformer([("housing", OneHotEncoder(handle_unknown="ignore"), ["Housing"])], remainder="passthrough"),
    RandomForestClassifier(60, max_depth=6, random_state=0),
).fit(table[features], np.where(approved, "approved", "denied"))
explainer = Explainer(pipeline, schema=schema)

# %% [markdown]
# ## One customer

# %%
denied = table[pipeline.predict(table[features]) == "denied"]
answer = explainer.explain(denied.iloc[[6]], target="approved")
print(answer.sentence(subject="the application"))
answer

# %%
safer = explainer.explain(denied.iloc[[6]], target=ProbabilityTarget("approved", at_least=0.7))
print(safer.sentence())

# %%
answer.plot().figure.savefig("change.png", dpi=120)
answer.to_html("customer.html", subject="the application")
print(f"Written: change.png, customer.html ({Path('customer.html').stat().st_size // 1000} kB)")

# %% [markdown]
# ## Everybody who was denied, joined to the table

# %%
answers = explainer.explain_many(denied, target="approved")
joined = denied.join(answers.to_frame())
print(joined["status"].value_counts().to_dict())
print(joined.groupby("Housing")["distance"].median().astype(float).round(4).to_dict())
joined.to_csv("answers.csv")
