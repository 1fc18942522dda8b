"""Graphs of candidate pairs."""

import numpy as np

from sparsetransport.prices.graph import graph_of, lists_by_row


def test_pairs_of_all_lists_once_by_row_and_by_column():
    rng = np.random.default_rng(0)
    first, second = rng.integers(-1, 5, (6, 3)), rng.integers(-1, 6, (5, 2))
    graph = graph_of((6, 5), lists_by_row(first), lists_by_row(second)[::-1])
    expected = {(i, int(j)) for i in range(6) for j in first[i] if j >= 0}
    expected |= {(int(i), j) for j in range(5) for i in second[j] if i >= 0}
    pairs = list(zip(graph.row.tolist(), graph.col.tolist(), strict=True))
    assert pairs == sorted(expected)
    assert [j for i in range(6) for j in graph.col[graph.first[i] : graph.first[i + 1]]] == [j for _, j in pairs]
    by_col = [(pairs[e][1], pairs[e][0]) for e in graph.by_col]
    assert by_col == sorted(by_col)
    assert graph.row_by_col.tolist() == [i for _, i in by_col]
    assert np.diff(graph.first_by_col).tolist() == [sum(j == col for _, j in pairs) for col in range(5)]


def test_values_go_to_the_same_pairs_of_another_graph():
    some = graph_of((3, 3), (np.array([0, 1, 2]), np.array([2, 1, 0])))
    more = graph_of((3, 3), (np.array([0, 0, 2, 2]), np.array([1, 2, 0, 2])))
    assert more.matched(some, np.array([5.0, 6.0, 7.0])).tolist() == [0.0, 5.0, 7.0, 0.0]
    assert graph_of((3, 3)).matched(some, np.ones(3)).size == 0
    assert some.matched(graph_of((3, 3)), np.ones(0)).tolist() == [0.0, 0.0, 0.0]
