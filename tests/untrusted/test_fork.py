"""A process that is forked while another thread prepares a question can answer questions itself."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import logging, os, signal, sys, threading, time
import numpy as np
from ifonly import Binary, Explainer, Integer, Network, Schema
from ifonly.methods import Enumerate
from ifonly.model import network_model

schema = Schema([Integer("Age", 17, 20), Binary("Owner")])
explainer = Explainer(network_model(Network.of([(np.ones((1, 2)), [-19.0])]), schema, classes=("no", "yes")))
began = threading.Event()

class Slow:
    name = "slow"

    def prepare(self, question, tolerances=None):
        began.set()
        time.sleep(0.5)
        logging.getLogger("somewhere").debug("a lock that others hold at forks too")
        return Enumerate().prepare(question)

kind = sys.argv[1]
if kind == "slow":
    ours, theirs = Slow(), Enumerate()
    thread = threading.Thread(target=lambda: explainer.using(ours).explain([17, 0]))
else:
    ours = theirs = None
    thread = threading.Thread(target=lambda: (began.set(), explainer.explain([17, 0])))
thread.start()
began.wait()
time.sleep(float(sys.argv[2]))
child = os.fork()
if child == 0:
    signal.alarm(500)
    answer = explainer.using(theirs).explain([18, 0])
    os._exit(0 if answer.counterfactual is not None else 3)
status = os.waitpid(child, 0)[1]
thread.join()
print("child", status)
"""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.parametrize(("kind", "seconds"), [("slow", 0.0), ("search", 0.0), ("search", 0.2), ("search", 0.6)])
def test_a_fork_while_a_question_is_prepared(kind: str, seconds: float) -> None:
    words = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SCRIPT, kind, str(seconds)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=900)
    assert (done.stdout, done.stderr) == ("child 0\n", "")
