"""Programs in files that run without Stretto: ONNX."""

from stretto.export.onnx_model import onnx as onnx
