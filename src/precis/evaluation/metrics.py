"""The scores by one name each: ROUGE, BLEU, METEOR and the shape of a summary."""

from precis.evaluation.bleu import CorpusScore, bleu
from precis.evaluation.meteor import Meteor, synonyms_at_hand
from precis.evaluation.meteor_tool import MeteorTool
from precis.evaluation.rouge import Rouge
from precis.evaluation.text_statistics import shape_statistics

__all__ = ["CorpusScore", "Meteor", "MeteorTool", "Rouge", "bleu", "shape_statistics", "synonyms_at_hand"]
