"""What follows from answers, kept up to date while they come in."""

from __future__ import annotations


class Closure:
    """Groups that "same" answers make, and the groups that are known to differ.

    An answer that contradicts what follows from the earlier ones changes nothing.

    Attributes
    ----------
    n_known : int
        How many pairs of items have an answer, given or inferred.
    """

    def __init__(self) -> None:
        self._group: dict[int, int] = {}  # item: the name of its group
        self._members: dict[int, list[int]] = {}
        self._differ: dict[int, set[int]] = {}  # group: the groups that it differs from
        self.n_known = 0

    def follows(self, i: int, j: int) -> bool | None:
        """True for "same", False for "different", None if it is open."""
        one, other = self._group.get(i, i), self._group.get(j, j)
        if one == other:
            return True
        return False if other in self._differ.get(one, ()) else None

    def add(self, i: int, j: int, same: bool) -> bool:
        """Learn an answer; whether it fits with the earlier ones."""
        known = self.follows(i, j)
        if known is not None:
            return known == same
        one, other = self._named(i), self._named(j)
        if same:
            self._join(one, other)
        else:
            self._differ[one].add(other)
            self._differ[other].add(one)
            self.n_known += len(self._members[one]) * len(self._members[other])
        return True

    def _named(self, item: int) -> int:
        """The group of an item, made if it is alone; a group has the name of its first item."""
        if item not in self._group:
            self._group[item], self._members[item], self._differ[item] = item, [item], set()
        return self._group[item]

    def _join(self, one: int, other: int) -> None:
        if len(self._members[one]) < len(self._members[other]):
            one, other = other, one
        kept, moved = len(self._members[one]), len(self._members[other])
        ours, theirs = self._differ[one], self._differ.pop(other)
        self.n_known += kept * moved
        self.n_known += moved * sum(len(self._members[group]) for group in ours - theirs)
        self.n_known += kept * sum(len(self._members[group]) for group in theirs - ours)
        for group in theirs:
            self._differ[group].discard(other)
            self._differ[group].add(one)
        ours |= theirs
        for item in self._members[other]:
            self._group[item] = one
        self._members[one] += self._members.pop(other)
