"""A scikit-learn pipeline on a DataFrame with text and numbers, explained in the table's own words.

The schema speaks of the table's columns. What the pipeline does to them (scaling, one-hot) becomes part of the network,
and every answer is checked with the pipeline itself. Needs: pip install 'ifonly[sklearn]'
"""

from sklearn.compose import ColumnTransformer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ifonly import Explainer, Fixed, OnlyUp, datasets, import_model

data = datasets.load("adult")
frame, labels = data.frame(), data.labels
train, test = data.split()

numbers = [feature.name for feature in data.schema if feature.kind in ("integer", "real")]
pipeline = make_pipeline(
    ColumnTransformer([("numbers", StandardScaler(), numbers)], remainder=OneHotEncoder(handle_unknown="ignore")),
    MLPClassifier(hidden_layer_sizes=(10, 10), early_stopping=True, random_state=0),
)
pipeline.fit(frame.iloc[train[:4000]], labels[train[:4000]])
print(f"Accuracy: {pipeline.score(frame.iloc[test], labels[test]):.1%}")

model = import_model(pipeline, data.schema, classes=("at most 50K", "more than 50K"))
print(f"Imported: {model.source}, {model.network.hidden} neurons")
print(f"Its scores are at most {model.deviation:.1e} from the pipeline's.")

explainer = Explainer(model)
person = next(data.row(i) for i in test if pipeline.predict(frame.iloc[[i]])[0] == 0)
answer = explainer.explain(person, constraints=[Fixed("Sex"), Fixed("NativeCountry"), OnlyUp("Age")])
print(answer)
