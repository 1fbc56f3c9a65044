"""A network denies a credit application. What is the smallest change that would have made it say yes?"""

from ifonly import Explainer, Fixed, OnlyUp, datasets

data = datasets.load("credit")
explainer = Explainer(datasets.network("credit"), classes=["deny", "approve"])
person = data.row(data.split()[1][0])  # someone whom the network has never seen

answer = explainer.explain(
    person, target="approve", constraints=[Fixed("isMale"), Fixed("isMarried"), OnlyUp("AgeGroup")]
)
print(answer)
print(f"{answer.status}: distance {answer.distance:.6f}, and nothing nearer than {answer.lower:.6f} exists")
