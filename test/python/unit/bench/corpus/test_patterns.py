"""Test patterns of a corpus: their names and inputs."""

from __future__ import annotations

import pytest
import torch

from bridge.bench.corpus.command import chosen
from bridge.bench.corpus.patterns import Corpus, outline_inputs


def test_a_folder_that_is_no_corpus_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no checkout of the corpus"):
        Corpus(tmp_path)


def test_names_are_in_the_order_of_their_hashes(corpus):
    assert corpus.names() == ["norm_1", "bad_2"]
    assert chosen(corpus.names(), ["bad"], "0/1") == ["bad_2"]
    assert chosen(corpus.names(), [], "1/2") == ["bad_2"]


def test_inputs_have_the_layouts_of_their_entries():
    entries = [[[2, 3], "bf16", {"st": [1, 2]}], ["S", [6]], ["sc", 0.5], [[4], "f32", {"alias": 0, "off": 2}]]
    strided, size, number, alias = outline_inputs({"inputs": entries, "alias_group_nbytes": [24]})
    assert (strided.shape, strided.stride(), strided.dtype) == ((2, 3), (1, 2), torch.bfloat16)
    assert (size, number) == ([6], 0.5)
    assert (alias.storage_offset(), alias.untyped_storage().nbytes()) == (2, 24)
