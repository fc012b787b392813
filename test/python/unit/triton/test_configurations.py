"""Test the configurations that a shared launch tries: no block is compiled for fewer warps than it may take."""

from __future__ import annotations

from types import SimpleNamespace

from bridge.lowering.triton.configurations import MOST_WORK, Joint, Part, joint_configurations


def config(warps, stages=1, **blocks):
    return SimpleNamespace(kwargs=blocks, num_warps=warps, num_stages=stages)


def tile(warps, x, y):
    return config(warps, XBLOCK=x, YBLOCK=y)


#: What torch 2.11 has for RoPE of a transposed key, and for a norm of 512 columns, on an H100 (DeepSeek-V3).
ROPE = Part(
    [tile(4, 32, 32), tile(8, 64, 64), tile(8, 16, 256), tile(4, 64, 16), tile(4, 1, 1024)], {"y": 2048, "x": 64}, 35
)
NORM = Part([config(1, XBLOCK=2)], {"x": 2048, "r0_": 512}, 15)


def work(parts, chosen):
    """Return what compiling takes for configurations that are each (configuration of every part, warps)."""
    return sum(
        part.work(config, warps) for configs, warps in chosen for part, config in zip(parts, configs, strict=True)
    )


def alone(parts):
    return sum(part.work(config, config.num_warps) for part in parts for config in part.configs)


def blocks_of(joint, i):
    """Return a part's own blocks, of a configuration of the launch."""
    return {key.removesuffix(f"_{i}"): size for key, size in joint.blocks.items() if key.endswith(f"_{i}")}


def test_a_persistent_row_counts_and_a_looped_one_by_its_block():
    assert NORM.each(NORM.configs[0], 1) == 2 * 512 / 32
    looped = Part([config(4, XBLOCK=2, R0_BLOCK=64)], {"x": 2048, "r0_": 512}, 15)
    assert looped.each(looped.configs[0], 4) == 2 * 64 / 128


def test_the_warps_of_a_norm_are_not_tried_for_large_blocks_beside_it():
    joint = joint_configurations([NORM, ROPE])
    assert [(blocks_of(j, 1), j.warps) for j in joint] == [(c.kwargs, c.num_warps) for c in ROPE.configs]
    assert all(blocks_of(j, 0) == {"XBLOCK": 2} for j in joint)


def test_fewer_warps_are_tried_where_no_thread_gets_more_than_alone():
    long, short = Part([tile(2, 1, 1024), tile(2, 1, 64)], {}, 10), Part([tile(4, 1, 128), tile(4, 1, 128)], {}, 10)
    tried = [(blocks_of(j, 0)["YBLOCK"], j.warps) for j in joint_configurations([long, short])]
    assert tried == [(1024, 4), (64, 4)]
    wide = Part([tile(4, 1, 256), tile(4, 1, 128)], {}, 10)
    tried = [(blocks_of(j, 0)["YBLOCK"], j.warps) for j in joint_configurations([long, wide])]
    assert tried == [(1024, 4), (64, 4), (64, 2)]


def test_a_large_part_is_not_compiled_again_for_every_configuration_of_a_small_one():
    large, small = Part([tile(4, 64, 64)], {}, 200), Part([tile(4, 1, 128 << n) for n in range(6)], {}, 10)
    assert joint_configurations([large, small]) == [
        Joint({"XBLOCK_0": 64, "YBLOCK_0": 64, "XBLOCK_1": 1, "YBLOCK_1": 128}, 4, 1)
    ]
    cheap = Part([tile(4, 1, 128)], {}, 10)
    assert len(joint_configurations([cheap, Part(small.configs, {}, 200)])) > 3


def test_all_together_take_not_much_more_to_compile_than_the_parts_alone():
    families = [[NORM, ROPE], [ROPE, ROPE], [NORM, NORM, ROPE], [Part(ROPE.configs[::-1], {}, 5), NORM, ROPE]]
    for parts in families:
        chosen = [
            ([SimpleNamespace(kwargs=blocks_of(j, i)) for i in range(len(parts))], j.warps)
            for j in joint_configurations(parts)
        ]
        assert 0 < work(parts, chosen) <= MOST_WORK * alone(parts)


def test_equal_parts_try_all_of_theirs():
    joint = joint_configurations([ROPE, ROPE])
    assert [j.warps for j in joint] == [c.num_warps for c in ROPE.configs]


def test_stages_are_the_most_of_any_part():
    assert joint_configurations([Part([config(4, 3, XBLOCK=64)], {}, 1), NORM])[0].stages == 3


def test_blocks_of_rows_that_are_not_tried():
    """Check which blocks of rows are not tried: rows of 128 in 2 warps give 2 to 64 elements a thread.

    Where no block fits, the first is tried.
    """
    heads = Part([config(2, XBLOCK=rows) for rows in (1, 8, 32)], {"x": 16384, "r0_": 128}, 60)
    few = Part(heads.configs, {"x": 1024, "r0_": 128}, 60)
    assert [blocks_of(j, 0)["XBLOCK"] for j in joint_configurations([heads, heads])] == [8]
    assert [blocks_of(j, 0)["XBLOCK"] for j in joint_configurations([few, few])] == [1, 8]
    long = Part([config(2, XBLOCK=rows) for rows in (4, 8)], {"x": 16384, "r0_": 1024}, 60)
    assert [blocks_of(j, 0)["XBLOCK"] for j in joint_configurations([long, long])] == [4]
    plain = Part([config(4, XBLOCK=1024), config(8, XBLOCK=512)], {"x": 8388608}, 60)
    assert plain.tried == plain.configs  # a maximum of windows, 2 elements a thread: 57 us, with 8 elements 83
    looped = Part([config(2, XBLOCK=64, R0_BLOCK=64)], {"x": 16384, "r0_": 1024}, 60)
    assert looped.tried == looped.configs


def test_short_rows_get_more_of_them_in_the_warps_of_a_long_one():
    """Check that more short rows share a block in the warps of a long one: two rows of 64 would leave them idle."""
    short = Part([config(1, XBLOCK=2)], {"x": 1 << 18, "r0_": 64}, 60)
    looped = Part([config(16, XBLOCK=1, R0_BLOCK=2048)], {"x": 512, "r0_": 49152}, 20)
    (joint,) = joint_configurations([short, looped])
    assert (joint.blocks, joint.warps) == ({"XBLOCK_0": 32, "XBLOCK_1": 1, "R0_BLOCK_1": 2048}, 16)


def test_short_rows_stay_as_they_are_where_blocks_would_be_few():
    short = Part([config(1, XBLOCK=2)], {"x": 1024, "r0_": 64}, 60)
    looped = Part([config(16, XBLOCK=1, R0_BLOCK=2048)], {"x": 512, "r0_": 49152}, 20)
    (joint,) = joint_configurations([short, looped])
    assert joint.blocks["XBLOCK_0"] == 2


def test_many_rows_keep_what_a_thread_has_alone_beside_few_of_more_warps():
    """Check that many rows keep the elements a thread has alone, beside few rows in more warps.

    Norms of 12,808 and of 512 rows of 1024: with one row in eight warps the first took 23 us, and 15 alone.
    """
    many = Part([config(1, XBLOCK=1)], {"x": 16384, "r0_": 1024}, 60)
    few = Part([config(8, XBLOCK=1)], {"x": 512, "r0_": 1024}, 60)
    tried = [(j.blocks["XBLOCK_0"], j.blocks["XBLOCK_1"], j.warps) for j in joint_configurations([many, few])]
    assert tried == [(4, 1, 8), (1, 1, 8)]
    fewer = Part(many.configs, {"x": 2048, "r0_": 1024}, 60)
    assert [j.blocks["XBLOCK_0"] for j in joint_configurations([fewer, few])] == [1], "2048 programs are not many"
