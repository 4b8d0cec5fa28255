"""The main job on the lecture's MLP, from the module as given to a library call, checked."""

from __future__ import annotations

from irviz.app.session import Session
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule


def demo_session() -> Session:
    """Return a session on the lecture's MLP with its weights and the held-out digits."""
    held_out = digits()
    return Session(MyModule, params=mlp_params(), inputs=held_out.images, labels=held_out.labels)


def demo_stages() -> Session:
    """Return the session with its weights bound and then ReLU swapped for the library's."""
    return demo_session().bind().swap("relu0", "env.relu")
