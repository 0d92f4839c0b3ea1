"""The scores by one name each: ROUGE, BLEU and the shape of a summary."""

from precis.evaluation.bleu import CorpusScore, bleu
from precis.evaluation.rouge import Rouge
from precis.evaluation.text_statistics import shape_statistics

__all__ = ["CorpusScore", "Rouge", "bleu", "shape_statistics"]
