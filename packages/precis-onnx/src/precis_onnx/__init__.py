"""Summarizes with folders of `precis export onnx`, using onnxruntime and numpy."""

from precis_onnx.onnx_summarizer import Summarizer, Summary
from precis_text.errors import UserError

__all__ = ["Summarizer", "Summary", "UserError"]
