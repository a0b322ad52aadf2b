"""What is compiled while a test runs."""

from stretto._engine.xla import pjrt

__all__ = ["texts_compiled"]


def texts_compiled(monkeypatch, *modules):
    """The list that each text goes to that one of these modules has compiled from now on."""
    texts = []
    real = pjrt.compile_text

    def noted(text, *rest):
        texts.append(text)
        return real(text, *rest)

    for module in modules:
        monkeypatch.setattr(module, "compile_text", noted)
    return texts
