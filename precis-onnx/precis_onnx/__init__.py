"""Summarizes with folders of `precis export onnx`, using onnxruntime and numpy."""

from precis_onnx.shared.errors import UserError
from precis_onnx.summarizer import Summarizer, Summary

__all__ = ["Summarizer", "Summary", "UserError"]
