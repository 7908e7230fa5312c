from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memeval.statistics.multiple import benjamini_hochberg, compact_letters

# fmt: off
OF_1995 = [
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
    0.6528, 0.7590, 1,
]
ADJUSTED = [
    0.0015, 0.003, 0.0095, 0.035625, 0.0603, 0.06385714, 0.06385714, 0.0645, 0.0765, 0.486,
    0.58118182, 0.714875, 0.75323077, 0.81321429, 1,
]
# fmt: on


def test_adjusted_ps_match_the_example_of_benjamini_and_hochberg() -> None:
    assert benjamini_hochberg(OF_1995) == pytest.approx(ADJUSTED, abs=5e-9)
    backwards = benjamini_hochberg(OF_1995[::-1])
    assert backwards == pytest.approx(ADJUSTED[::-1], abs=5e-9)


@given(st.lists(st.floats(0, 1), max_size=20))
def test_adjusted_ps_equal_scipys(ps: list[float]) -> None:
    from scipy import stats

    expected = stats.false_discovery_control(ps) if ps else []
    assert benjamini_hochberg(ps) == pytest.approx(list(expected))


@pytest.mark.parametrize(
    ("count", "different", "letters"),
    [
        (0, [], []),
        (3, [], ["a", "a", "a"]),
        (2, [(0, 1)], ["a", "b"]),
        (3, [(0, 2)], ["a", "ab", "b"]),
        (3, [(0, 1), (0, 2), (1, 2)], ["a", "b", "c"]),
        (4, [(0, 3), (0, 2), (1, 3)], ["a", "ab", "bc", "c"]),
    ],
)
def test_letters_match_examples(
    count: int, different: list[tuple[int, int]], letters: list[str]
) -> None:
    assert compact_letters(count, different) == letters


@given(
    st.integers(1, 7).flatmap(
        lambda count: st.tuples(
            st.just(count),
            st.sets(
                st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(
                    lambda pair: pair[0] < pair[1]
                )
            ),
        )
    )
)
def test_items_share_a_letter_iff_they_do_not_differ(
    drawn: tuple[int, set[tuple[int, int]]],
) -> None:
    count, different = drawn
    letters = compact_letters(count, sorted(different))
    for first in range(count):
        assert letters[first]
        for second in range(first + 1, count):
            shared = not set(letters[first]).isdisjoint(letters[second])
            assert shared == ((first, second) not in different)
