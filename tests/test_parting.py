"""What is lumped together after training, and parted again."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pairmargin import clustering_accuracy
from pairmargin.inputs import DenseInput
from pairmargin.pairs import sample_pairs
from pairmargin.parting import parted_again

SIZES = [150, 150, 60, 60, 60]
TRUTH = np.repeat(np.arange(5), SIZES)
LUMPED = TRUTH.clip(max=2)  # three objects that look alike
SEEDS = np.arange(3)


@pytest.fixture(scope="module")
def turning() -> DenseInput:
    """Objects on a turntable: which way they face is seen best, and which of those alike it is, hardly."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, len(TRUTH))
    place = np.array([[40.0, 0.0], [-40.0, 0.0], [0.0, 40.0], [0.0, 40.0], [0.0, 40.0]])[TRUTH]
    turned = 10 * np.column_stack([np.cos(angle), np.sin(angle)])
    marks = 2.5 * np.eye(5)[TRUTH] + rng.normal(scale=0.5, size=(len(TRUTH), 5))
    return DenseInput(torch.from_numpy(np.hstack([place + turned, marks])))


def test_objects_that_look_alike_are_parted_where_no_answer_holds_them_together(turning: DenseInput) -> None:
    final = parted_again(LUMPED, turning, sample_pairs(TRUTH, 1_500, random_state=0), 5, SEEDS)
    assert len(np.unique(final)) == 5
    assert clustering_accuracy(TRUTH, final) > 0.97


def test_one_object_that_turns_is_held_together_by_its_answers(turning: DenseInput) -> None:
    final = parted_again(LUMPED, turning, sample_pairs(LUMPED, 1_500, random_state=0), 5, SEEDS)
    assert clustering_accuracy(LUMPED, final) == 1


def test_a_short_silence_parts_nothing(turning: DenseInput) -> None:
    """Of 30 "same" answers, not five are missing between any halves."""
    final = parted_again(LUMPED, turning, sample_pairs(TRUTH, 60, random_state=0), 5, SEEDS)
    assert clustering_accuracy(LUMPED, final) == 1


def test_there_are_no_more_parts_than_there_is_room_for(turning: DenseInput) -> None:
    final = parted_again(LUMPED, turning, sample_pairs(TRUTH, 1_500, random_state=0), 4, SEEDS)
    assert len(np.unique(final)) == 4
    assert len(np.unique(final[TRUTH >= 2])) == 2
