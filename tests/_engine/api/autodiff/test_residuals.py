"""What a reverse derivative keeps, printed."""

import stretto as st
import stretto.numpy as snp


def test_each_residual_has_its_type_and_origin(capsys):
    def f(x, p, n):
        y = snp.sin(x)
        return snp.sum(y * p["w"]) * n

    st.ad_checkpoint.print_saved_residuals(f, snp.ones(3), {"w": snp.ones(3)}, 2)
    lines = capsys.readouterr().out.splitlines()
    kinds = sorted(line.split(" at ")[0] for line in lines)
    assert "float32[3] computed by cos" in kinds and "float32[3] computed by sin" in kinds
    assert "float32[3] the argument p['w']" in lines
    assert all("test_residuals.py:" in line for line in lines if " at " in line)


def test_a_checkpoint_keeps_its_arguments(capsys):
    st.ad_checkpoint.print_saved_residuals(
        st.ad_checkpoint.checkpoint(lambda x: snp.sin(snp.sin(x))), 1.0
    )
    assert capsys.readouterr().out == "float32[] the argument x\n"
