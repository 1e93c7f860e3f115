"""Which answers can be trusted, and how sure scores may be."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pairmargin import MaxMarginClustering, Pairs, sample_pairs, stages
from pairmargin.trust import PROOF, Trust, chances, judged, margins, median_margin, same_chances


def told(m: int, sharpness: float, error_rate: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of the ends of m pairs, answers that come true with their chances, and which of these are wrong."""
    rng = np.random.default_rng(seed)
    ends = rng.normal(size=(m, 2, 4))
    same = rng.random(m) < same_chances(ends, sharpness)
    wrong = rng.random(m) < error_rate
    return ends, same ^ wrong, wrong


@pytest.mark.parametrize("sharpness", [1.5, 4.0])
@pytest.mark.parametrize("error_rate", [0.0, 0.2])
def test_sharpness_and_share_of_mistakes_are_read_off_the_answers(sharpness: float, error_rate: float) -> None:
    ends, same, _ = told(8000, sharpness, error_rate)
    found = judged(ends, same, np.zeros(len(same), dtype=bool), were_drawn=True)
    assert found.sharpness == pytest.approx(sharpness, rel=0.25)
    assert found.error_rate == pytest.approx(error_rate, abs=0.03)


def test_mistakes_are_trusted_less() -> None:
    ends, same, wrong = told(2000, 6.0, 0.1)
    found = judged(ends, same, np.zeros(len(same), dtype=bool), were_drawn=True)
    assert found.trust[wrong].mean() < 0.6 < 0.9 < found.trust[~wrong].mean()
    assert found.right[wrong].mean() < found.right[~wrong].mean()


@pytest.mark.parametrize("seed", range(5))
def test_without_proof_of_mistakes_all_are_trusted(seed: int) -> None:
    ends, same, _ = told(60, 3.0, 0.0, seed)
    found = judged(ends, same, np.zeros(len(same), dtype=bool), were_drawn=True)
    assert found.error_rate == 0
    assert (found.trust == 1).all()


def test_mistakes_that_are_known_to_be_there_need_no_proof() -> None:
    doubted = 0
    for seed in range(8):
        ends, same, _ = told(60, 3.0, 0.1, seed)
        nobody = np.zeros(len(same), dtype=bool)
        cautious, sure = (judged(ends, same, nobody, were_drawn=True, proof=proof) for proof in (PROOF, 0.0))
        assert sure.error_rate >= cautious.error_rate
        doubted += sure.error_rate > cautious.error_rate == 0
    assert doubted >= 2


@pytest.mark.parametrize("contradict", [True, False])
def test_mistakes_once_found_are_not_taken_back_where_answers_contradict_each_other(
    contradict: bool, blobs: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = blobs
    pairs, proofs = sample_pairs(y, 60, random_state=0), []

    def accusing(ends: np.ndarray, same: np.ndarray, confirmed: np.ndarray, were_drawn: bool, proof: float) -> Trust:
        proofs.append(proof)
        return Trust.complete(len(same))._replace(error_rate=0.1)

    monkeypatch.setattr(stages, "judged", accusing)
    if contradict:
        (i, j), same = pairs.index[0], pairs.same[0]
        pairs = pairs + Pairs([(i, j)], [not same])
    MaxMarginClustering(3, random_state=0, n_init=1, on_conflict="keep").fit(X, pairs=pairs)
    assert proofs == [PROOF, 0.0 if contradict else PROOF]


def test_answers_that_confirm_each_other_speak_against_mistakes() -> None:
    ends, same, wrong = told(2000, 6.0, 0.1)
    nobody, some = np.zeros(len(same), dtype=bool), ~wrong & (np.arange(len(same)) % 2 == 0)
    doubted, known = (judged(ends, same, confirmed, were_drawn=True) for confirmed in (nobody, some))
    assert 0 < known.error_rate < doubted.error_rate
    assert known.trust[some].min() > doubted.trust[some].min()
    assert judged(ends, same, ~nobody, were_drawn=True).error_rate == 0


def test_same_answers_that_were_looked_for_are_no_mistakes_where_few_pairs_are_the_same() -> None:
    rng = np.random.default_rng(0)
    ends = 2 * rng.normal(size=(20_000, 2, 20))
    same = rng.random(len(ends)) < same_chances(ends, 1.0)
    half = np.concatenate([np.flatnonzero(same)[:1000], np.flatnonzero(~same)[:1000]])
    ends, same, nobody = ends[half], same[half], np.zeros(len(half), dtype=bool)
    drawn, picked = (judged(ends, same, nobody, were_drawn=drawn) for drawn in (True, False))
    assert drawn.error_rate == 0 < picked.error_rate
    assert drawn.sharpness == pytest.approx(1.0, rel=0.3)
    wrong = rng.random(len(same)) < 0.2
    found = judged(ends, same ^ wrong, nobody, were_drawn=True)
    assert found.error_rate == pytest.approx(0.2, abs=0.05)
    assert found.right[wrong].mean() < found.right[~wrong].mean()


def test_chances_by_hand() -> None:
    scores = np.log([[[1.0, 3.0], [3.0, 1.0]]])
    np.testing.assert_allclose(chances(scores, 1.0), [[[0.25, 0.75], [0.75, 0.25]]])
    assert same_chances(scores, 1.0) == pytest.approx(2 * 0.25 * 0.75)
    assert same_chances(scores, 0.0) == pytest.approx(0.5)


def test_median_margin() -> None:
    assert median_margin(margins(torch.tensor([[3.0, 1.0, 0.0], [0.0, 5.0, 4.0], [0.0, 0.0, 4.0]]))) == 2
    assert median_margin(margins(torch.zeros(3, 1))) == 1
    assert median_margin(margins(torch.zeros(3, 2))) == 1
    assert median_margin(margins(torch.tensor([[1e-9, 0.0], [1e-9, 0.0], [5.0, 0.0]]))) == 1  # most are undecided


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(240) % 3
    return 4 * np.eye(3)[y] + rng.normal(size=(240, 3)), y


def test_flipped_answers_come_first_and_hardly_matter(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = blobs
    pairs = sample_pairs(y, 300, random_state=0)
    wrong = np.zeros(300, dtype=bool)
    wrong[::10] = True
    asked = Pairs(pairs.index, pairs.same ^ wrong)

    model = MaxMarginClustering(3, random_state=0, on_conflict="keep").fit(X, pairs=asked)

    assert sorted(model.suspicious_pairs_) == list(range(300))
    assert wrong[model.suspicious_pairs_[:60]].sum() >= 26  # of 30
    assert model.error_rate_ == pytest.approx(0.1, abs=0.05)
    assert model.answer_trust_[wrong].mean() < 0.3 < 0.95 < model.answer_trust_[~wrong].mean()
    clean = MaxMarginClustering(3, random_state=0).fit(X, pairs=pairs)
    assert clean.error_rate_ == 0
    assert np.mean(model.labels_[pairs.index[:, 0]] == model.labels_[pairs.index[:, 1]]) == pytest.approx(0.5, abs=0.05)


def test_chances_of_clusters_sum_to_1_and_those_of_pairs_follow(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = blobs
    model = MaxMarginClustering(3, random_state=0).fit(X, pairs=sample_pairs(y, 60, random_state=0))

    chance = model.cluster_proba(X)

    np.testing.assert_allclose(chance.sum(1), 1)
    np.testing.assert_array_equal(chance.argmax(1), model.predict(X))
    index = np.array([[0, 3], [0, 1], [7, 9]])
    np.testing.assert_allclose(model.pair_proba(X, index), (chance[index[:, 0]] * chance[index[:, 1]]).sum(1))
    assert model.pair_proba(X, index)[0] > 0.5 > model.pair_proba(X, index)[1]


def test_chances_are_as_often_right_as_they_say(blobs: tuple[np.ndarray, np.ndarray]) -> None:
    """A reliability curve: of the pairs with a chance of about p, a share of about p is the same."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 900)
    X = 2.2 * np.eye(3)[y] + rng.normal(size=(900, 3))  # classes that overlap
    model = MaxMarginClustering(3, random_state=0).fit(X, pairs=sample_pairs(y, 300, random_state=0))
    asked = sample_pairs(y, 3000, balanced=False, random_state=1)

    chance = model.pair_proba(X, asked)

    bins = np.minimum((chance * 5).astype(int), 4)
    gap = [abs(chance[bins == b].mean() - asked.same[bins == b].mean()) * np.mean(bins == b) for b in np.unique(bins)]
    assert sum(gap) < 0.08


@pytest.mark.parametrize("settings", [{"robust": False}, {"n_clusters": 1}])
def test_what_cannot_be_judged_is_trusted(blobs: tuple[np.ndarray, np.ndarray], settings: dict[str, object]) -> None:
    X, y = blobs
    pairs = sample_pairs(y, 40, random_state=0)
    model = MaxMarginClustering(**({"n_clusters": 3, "random_state": 0} | settings)).fit(X, pairs=pairs)
    assert (model.answer_trust_ == 1).all()
    assert model.error_rate_ == 0
    np.testing.assert_allclose(model.cluster_proba(X).sum(1), 1)
