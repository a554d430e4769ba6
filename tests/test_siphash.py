"""The function behind the coins: published vectors, an obvious version, and all forms alike."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_siphash import siphash as naive

from calibrant.kernels import coin as kernel
from calibrant.kernels.coin import coins, secret_coin, siphash
from calibrant.recalibrate.secret import OLD, SAFE, Coins, block_key, coin_at, coins_from, words_of

pytestmark = pytest.mark.base

KEY = bytes(range(16))
VECTORS = [
    *("310e0edd47db6f72", "fd67dc93c539f874", "5a4fa9d909806c0d", "2d7efbd796666785"),
    *("b7877127e09427cf", "8da699cd64557618", "cee3fe586e46c9cb", "37d1018bf50002ab"),
    *("6224939a79f5f593", "b0e4a90bdf82009e", "f3b9dd94c5bb5d7a", "a7ad6b22462fb3f4"),
    *("fbe50e86bc8f1e75", "903d84c02756ea14", "eef27a8e90ca23f7", "e545be4961ca29a1"),
]
"""SipHash-2-4 of the messages 00 01 02 ... of 0 to 15 bytes, from the authors' reference code."""
WORDS = st.integers(0, 2**64 - 1)
BLOCKS = st.integers(0, 2**20)
CLOCKS = st.integers(0, 2**62)


@pytest.mark.parametrize("length", range(16))
def test_the_obvious_version_gives_the_published_vectors(length: int) -> None:
    found = naive(KEY, bytes(range(length)))
    assert found.to_bytes(8, "little").hex() == VECTORS[length]


@pytest.mark.skipif(sys.hash_info.algorithm != "siphash13", reason="needs SipHash-1-3 in Python")
def test_the_obvious_version_gives_what_python_hashes_with() -> None:
    # Python's own bytes are hashed by SipHash-1-3, whose key follows from PYTHONHASHSEED.
    texts = [b"a", b"sixteen letters!", b"and some more than that, to be sure"]
    script = f"print(*[hash(text) for text in {texts!r}])"
    told = {**os.environ, "PYTHONHASHSEED": "42"}
    run = subprocess.run(
        [sys.executable, "-c", script], env=told, capture_output=True, check=True, text=True
    )
    x, key = 42, bytearray()
    for _ in range(16):
        x = (x * 214013 + 2531011) % 2**32
        key.append(x >> 16 & 255)
    found = [naive(bytes(key), text, 1, 3) for text in texts]
    assert [int(word) % 2**64 for word in run.stdout.split()] == found


def test_the_function_gives_the_vector_of_the_paper() -> None:
    low, high = words_of(KEY)
    message = (
        int.from_bytes(bytes(range(8)), "little"),
        int.from_bytes(bytes(range(8, 16)), "little"),
    )
    assert siphash(low, high, *message) == 0xA129_CA61_49BE_45E5
    assert siphash(low, high, *message).to_bytes(8, "little").hex() == VECTORS[15]


@given(st.binary(min_size=16, max_size=16), BLOCKS, CLOCKS)
def test_a_coin_is_siphash_of_clock_and_block(secret: bytes, block: int, clock: int) -> None:
    message = clock.to_bytes(8, "little") + block.to_bytes(7, "little")
    u = secret_coin(*words_of(secret), block, clock)
    assert u == (naive(secret, message) >> 11) * 2.0**-53
    assert u == coin_at(secret, SAFE, block, clock)
    low, high = np.frombuffer(secret, "<i8").tolist()
    assert u == secret_coin(low, high, block, clock)


@given(WORDS, WORDS, BLOCKS, st.integers(0, 2**62), st.integers(1, 9))
def test_many_coins_at_once_are_the_same_coins(
    low: int, high: int, block: int, first: int, count: int
) -> None:
    clocks = np.arange(first, first + count, dtype=np.uint64)
    found = coins(low, high, block, clocks)
    assert found.tolist() == [secret_coin(low, high, block, first + k) for k in range(count)]
    blocks = np.arange(block, block + count, dtype=np.uint64)
    mixed = coins(low, high, blocks, clocks)
    assert mixed.tolist() == [secret_coin(low, high, block + k, first + k) for k in range(count)]


@pytest.mark.parametrize("how", [SAFE, OLD])
def test_coins_of_one_block_come_in_any_order(how: str) -> None:
    made = Coins(KEY, how, 3)
    for clock in (0, 1, 511, 512, 5, 100_000, 99_999, 2**40):
        assert made.at(clock) == coin_at(KEY, how, 3, clock)
    assert made.from_(600, 3).tolist() == [made.at(k) for k in (600, 601, 602)]
    assert coins_from(KEY, how, 3, 0, 2).tolist() == [made.at(0), made.at(1)]


class Row(list[int]):
    """Words of a header and a row, as far as coins ask for them."""

    def __init__(self, how: int, blocks: int, issued: int) -> None:
        super().__init__([0] * 200)
        self.row, self.at = 100, 150
        self[kernel.COINS], self[kernel.BUCKETS] = how, blocks
        self[self.row + kernel.SECRET : self.row + kernel.SECRET + 2] = words_of(KEY)
        self[self.row + kernel.ISSUED] = issued

    def thrown(self, block: int, clock: int) -> float:
        how = SAFE if self[kernel.COINS] else OLD
        self[self.at + kernel.KEY] = block_key(KEY, block, how)
        return kernel.toss(self, self.row, self.at, block, clock)


@pytest.mark.parametrize("how", [kernel.SIPHASH, kernel.SPLITMIX])
@pytest.mark.parametrize("issued", [0, 1000])
@pytest.mark.parametrize("blocks", [1, 3, 20, 5000])
@pytest.mark.parametrize("room", [2, 256])
def test_coins_made_ahead_are_the_same_however_few_are_kept(
    how: int, issued: int, blocks: int, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "chunks", {})
    monkeypatch.setattr(kernel, "early", {})
    monkeypatch.setattr(kernel, "MOST_CHUNKS", room)
    row, name = Row(how, blocks, issued), SAFE if how else OLD
    for clock in (0, 3, 15, 16, 17, 64, 127, 128, 129, 2047, 2048, 2064, 5000, 2):
        for block in {0, 1 % blocks, blocks - 1}:
            assert row.thrown(block, clock) == coin_at(KEY, name, block, clock)
            assert len(kernel.chunks) <= room
            assert len(kernel.early) <= room


def test_rows_of_one_secret_with_other_blocks_do_not_mix_up_their_coins() -> None:
    for blocks in (20, 10, 40):
        row = Row(kernel.SIPHASH, blocks, 1000)
        for block in range(blocks):
            assert row.thrown(block, 5) == coin_at(KEY, SAFE, block, 5)


@pytest.mark.parametrize("bit", range(128))
def test_every_bit_of_the_secret_turns_half_of_the_coins(bit: int) -> None:
    # 53 proportions of 512 trials for each of 128 bits: 1e-6 / 6784 each.
    low, high = words_of(KEY)
    clocks = np.arange(512, dtype=np.uint64)
    flip = (1 << bit, 0) if bit < 64 else (0, 1 << bit - 64)
    one, other = coins(low, high, 0, clocks), coins(low ^ flip[0], high ^ flip[1], 0, clocks)
    words = [(sample * 2**53).astype(np.uint64) for sample in (one, other)]
    turned = (words[0] ^ words[1])[:, None] >> np.arange(53, dtype=np.uint64) & np.uint64(1)
    assert np.abs(turned.mean(0) - 0.5).max() < 6.47 * np.sqrt(1 / 4 / 512)


def test_coins_of_blocks_and_clocks_are_uniform_and_have_nothing_to_do_with_each_other() -> None:
    low, high = words_of(KEY)
    blocks = np.repeat(np.arange(64, dtype=np.uint64), 1024)
    table = coins(low, high, blocks, np.tile(np.arange(1024, dtype=np.uint64), 64)).reshape(
        64, 1024
    )
    counts = np.bincount((table.ravel() * 256).astype(int), minlength=256)
    # Chi-square with 255 degrees of freedom, at 1 - 1e-6.
    assert ((counts - 256) ** 2 / 256).sum() < 373
    centred = table - 0.5
    for products in (centred[:-1] * centred[1:], centred[:, :-1] * centred[:, 1:]):
        assert abs(products.mean()) < 4.892 / 12 / np.sqrt(products.size)
