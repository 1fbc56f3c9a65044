"""The same question to a network, to XGBoost, to a forest and to a table of points: one line for each model.

Needs: pip install 'ifonly[sklearn,xgboost]'
"""

from sklearn.ensemble import RandomForestClassifier
from xgboost import XGBClassifier

from ifonly import Explainer, Scorecard, datasets

data = datasets.load("compas")
rows, labels = data.encoded(), data.labels
card = {
    "cutoff": 40,
    "features": {
        "AgeGroup": [{"is": "<25", "points": 20}, {"is": "25-45", "points": 10}, {"points": 0}],
        "PriorsCount": [{"below": 2, "points": 0}, {"below": 6, "points": 15}, {"points": 35}],
    },
}
models = {
    "network": datasets.network("compas"),
    "XGBoost": XGBClassifier(n_estimators=100).fit(rows, labels),
    "forest": RandomForestClassifier(100, max_depth=6, random_state=0).fit(rows, labels),
    "scorecard": Scorecard.from_dict(card),
}
person = {"AgeGroup": "25-45", "Race": "Caucasian", "Sex": "Male", "PriorsCount": 9, "ChargeDegree": "Felony"}
for name, model in models.items():
    explainer = Explainer(model, schema=data.schema, classes=["low risk", "high risk"])
    answer = explainer.explain(person, target="low risk", constraints=["Sex is fixed", "Race is fixed"])
    print(f"{name} ({answer.status}): {answer}")
