"""Objectives: each computes a summed loss from a model and a batch."""

from precis.objectives.losses import Loss, Objective, smoothed_cross_entropy
from precis.objectives.sequence_to_sequence import SequenceToSequence

__all__ = ["Loss", "Objective", "SequenceToSequence", "smoothed_cross_entropy"]
