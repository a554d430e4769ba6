"""The coins: known vectors, a battery of simple tests, and which coin a ticket draws.

Every statistic of the battery is compared with a threshold that a perfect generator
exceeds with probability 1e-6 or less; with some 150 of them the whole battery would
sound a false alarm once in several thousand choices of keys, and the keys are fixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import players
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import Recalibrator
from calibrant.core.ticket import Ticket
from calibrant.errors import ForeignTicket, InvalidInput, InvalidType, UnknownTicket
from calibrant.kernels import coin as module
from calibrant.kernels.coin import CHUNK, FIRST, GAMMA, MASK, SECOND, coin, secret_coin
from calibrant.kernels.layout import CAPACITY
from calibrant.recalibrate.secret import secret_of, words_of
from calibrant.registry import calibrators

pytestmark = pytest.mark.base

WORDS = st.integers(0, 2**63 - 1)
KEYS = [0, 1, 2**62 + 12345, 0x0123_4567_89AB_CDEF]

# Two-sided normal quantile at 1e-6.
SIGMAS = 4.892


def of_each(keys: np.ndarray, clocks: np.ndarray) -> np.ndarray:
    """The coin of each key and clock."""
    z = keys + clocks * np.uint64(GAMMA)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


def coins(key: int, start: int, count: int) -> np.ndarray:
    """So many coins of one key in a row."""
    return of_each(np.uint64(key), np.arange(start, start + count, dtype=np.uint64))


def chi_square_limit(freedom: int) -> float:
    """Wilson and Hilferty's approximation of the quantile at 1 - 1e-6."""
    a = 2 / (9 * freedom)
    return freedom * (1 - a + 4.753 * math.sqrt(a)) ** 3


def bits_of(sample: np.ndarray) -> np.ndarray:
    words = (sample * 2**53).astype(np.uint64)
    return (words[:, None] >> np.arange(53, dtype=np.uint64)) & np.uint64(1)


@pytest.fixture(scope="module", params=KEYS, ids=hex)
def sample(request: pytest.FixtureRequest) -> np.ndarray:
    return coins(request.param, 0, 1 << 16)


# Which numbers they are.


@pytest.mark.parametrize(
    ("seed", "words"),
    [
        (0, [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]),
        (
            1234567,
            [
                6457827717110365317,
                3203168211198807973,
                9817491932198370423,
                4593380528125082431,
                16408922859458223821,
            ],
        ),
    ],
)
def test_the_words_are_those_of_splitmix64(seed: int, words: list[int]) -> None:
    assert [coin(seed, clock) for clock in range(1, len(words) + 1)] == [
        (word >> 11) * 2.0**-53 for word in words
    ]


@given(WORDS, WORDS)
def test_a_coin_lies_in_the_half_open_interval_and_on_its_lattice(key: int, clock: int) -> None:
    u = coin(key, clock)
    assert 0.0 <= u < 1.0
    assert (u * 2**53).is_integer()


@given(WORDS, st.integers(0, 2**62))
def test_many_coins_at_once_are_the_same_coins(key: int, start: int) -> None:
    many = coins(key, start, 4).tolist()
    assert many == [coin(key, start + k) for k in range(4)]


@given(WORDS, WORDS)
def test_the_clock_moves_along_the_key_and_nothing_else(key: int, clock: int) -> None:
    assert coin(key, clock) == coin((key + clock * GAMMA) & MASK, 0)


# The battery.


def test_mean_and_variance_are_those_of_the_uniform_law(sample: np.ndarray) -> None:
    n = len(sample)
    assert abs(sample.mean() - 1 / 2) < SIGMAS * math.sqrt(1 / 12 / n)
    assert abs(((sample - 0.5) ** 2).mean() - 1 / 12) < SIGMAS * math.sqrt(1 / 180 / n)


def test_256_bins_are_equally_full(sample: np.ndarray) -> None:
    counts = np.bincount((sample * 256).astype(int), minlength=256)
    expected = len(sample) / 256
    assert ((counts - expected) ** 2 / expected).sum() < chi_square_limit(255)


@pytest.mark.parametrize("lag", [1, 2, 3, 16])
def test_a_coin_says_nothing_about_a_later_one(sample: np.ndarray, lag: int) -> None:
    centred = sample - 0.5
    products = centred[:-lag] * centred[lag:]
    assert abs(products.mean()) < SIGMAS / 12 / math.sqrt(len(products))


def test_pairs_fill_a_square_evenly(sample: np.ndarray) -> None:
    cells = (sample * 16).astype(int).reshape(-1, 2)
    counts = np.bincount(16 * cells[:, 0] + cells[:, 1], minlength=256)
    expected = len(cells) / 256
    assert ((counts - expected) ** 2 / expected).sum() < chi_square_limit(255)


def test_the_number_of_runs_about_one_half_is_right(sample: np.ndarray) -> None:
    n, above = len(sample), sample >= 0.5
    runs = 1 + np.count_nonzero(above[1:] != above[:-1])
    assert abs(runs - (n + 1) / 2) < SIGMAS * math.sqrt((n - 1) / 4)


def test_rising_runs_have_the_right_number(sample: np.ndarray) -> None:
    n = len(sample)
    falls = np.count_nonzero(sample[1:] < sample[:-1])
    assert abs(falls - (n - 1) / 2) < SIGMAS * math.sqrt((n + 1) / 12)


def test_each_of_the_53_bits_is_balanced(sample: np.ndarray) -> None:
    # 53 comparisons at once: 1e-6 / 53 each.
    ones = bits_of(sample).mean(0)
    assert np.abs(ones - 0.5).max() < 5.63 * math.sqrt(1 / 4 / len(sample))


def test_no_two_bits_of_a_coin_go_together(sample: np.ndarray) -> None:
    # 1378 pairs: 1e-6 / 1378 each.
    signs = 2.0 * bits_of(sample) - 1.0
    together = signs.T @ signs / len(sample)
    assert np.abs(np.triu(together, 1)).max() < 6.22 / math.sqrt(len(sample))


def test_birthdays_collide_as_often_as_they_should(sample: np.ndarray) -> None:
    # 2**16 birthdays in 2**31 days: Poisson with mean 1, 12 or more with probability 8e-10.
    days = np.sort((sample * 2**31).astype(np.int64))
    assert np.count_nonzero(np.diff(days) == 0) < 12
    # The spacings of 2**12 birthdays in 2**33 days repeat 2 times on average.
    early = np.sort((sample[: 1 << 12] * 2**33).astype(np.int64))
    spacings = np.sort(np.diff(early))
    assert np.count_nonzero(np.diff(spacings) == 0) < 15


@pytest.mark.parametrize("moved", ["key", "clock"])
@pytest.mark.parametrize("bit", range(63))
def test_every_bit_of_key_and_clock_turns_half_of_the_coin(moved: str, bit: int) -> None:
    # 63 x 2 x 53 proportions of 2048 trials: 1e-6 / 6678 each.
    rng = np.random.default_rng(bit)
    keys = rng.integers(0, 2**63, 2048, dtype=np.uint64)
    clocks = rng.integers(0, 2**63, 2048, dtype=np.uint64)
    flip = np.uint64(1 << bit)
    other = (keys ^ flip, clocks) if moved == "key" else (keys, clocks ^ flip)
    turned = bits_of(of_each(keys, clocks)) ^ bits_of(of_each(*other))
    assert np.abs(turned.mean(0) - 0.5).max() < 6.47 * math.sqrt(1 / 4 / 2048)


@pytest.mark.parametrize("distance", [1, 2, 255, 2**32])
def test_neighbouring_keys_have_nothing_to_do_with_each_other(distance: int) -> None:
    one, other = coins(99, 0, 1 << 15) - 0.5, coins(99 + distance, 0, 1 << 15) - 0.5
    for lag in range(-2, 3):
        products = one[2:-2] * np.roll(other, lag)[2:-2]
        assert abs(products.mean()) < SIGMAS / 12 / math.sqrt(len(products))


# Which coin a ticket draws.


@pytest.mark.parametrize("method", calibrators.names())
def test_a_draw_can_be_computed_again_from_its_ticket(method: str) -> None:
    rec = Recalibrator(method, resolution=7, buckets=3, seed=5)
    raw, outcomes = players.stream(250, 1)
    tickets = []
    for p, y in zip(raw, outcomes, strict=True):
        tickets.append(rec.forecast(p))
        rec.observe(tickets[-1], y)
    for ticket in tickets:
        u = rec.coin_of(ticket)
        low, high = words_of(secret_of(5, None))
        assert u == secret_coin(low, high, ticket.bucket, ticket.clock)
        assert ticket.mixture.draw(u) == ticket.index
        assert ticket.value == rec.calibrator.lattice.values[ticket.index]


@pytest.mark.parametrize("method", calibrators.names())
def test_two_open_tickets_never_share_a_coin(method: str) -> None:
    rec = Recalibrator(method, resolution=4, buckets=3, seed=5)
    raw, outcomes = players.stream(200, 2)
    tickets = []
    for k, (p, y) in enumerate(zip(raw, outcomes, strict=True)):
        tickets.append(rec.forecast(p))
        rec.predict_one(p)
        if k % 3 == 0:
            rec.observe(tickets[k // 2], y)
        if k % 7 == 0:
            rec.predict_one(0.5)
            rec.learn_one(0.5, y)
        if k % 50 == 0:
            rec.replay([0.5, p], [y, y])
            rec = rec.copy()
    assert len({(t.bucket, t.clock) for t in tickets}) == len(tickets)
    assert len({rec.coin_of(t) for t in tickets}) == len(tickets)


def test_the_coin_of_a_later_clock_is_not_told() -> None:
    rec = Recalibrator(seed=1)
    stored = rec.forecast(0.3).to_dict()
    with pytest.raises(ForeignTicket, match="must be as it was issued, got an altered one"):
        rec.coin_of(Ticket.from_dict(stored | {"clock": 1}))
    assert 0.0 <= rec.coin_of(Ticket.from_dict(stored)) < 1.0


def test_a_ticket_that_was_stored_without_its_clock_does_not_know_its_coin() -> None:
    rec = Recalibrator(seed=1)
    told = Ticket.from_dict(rec.forecast(0.5).to_dict() | {"clock": None})
    with pytest.raises(InvalidInput) as refused:
        rec.coin_of(told)
    expected = f"ticket must be the one that forecast() returned, got {told!r}"
    assert str(refused.value) == expected


def test_the_coin_of_a_foreign_ticket_is_not_told() -> None:
    theirs = Recalibrator(seed=2).forecast(0.5)
    rec = Recalibrator(seed=1)
    with pytest.raises(ForeignTicket):
        rec.coin_of(theirs)
    with pytest.raises(UnknownTicket):
        rec.coin_of(0)
    with pytest.raises(InvalidType):
        rec.coin_of(None)


def draws(**options: object) -> list[float]:
    rec = Recalibrator("exponential_regret", resolution=6, buckets=4, **options)
    raw, outcomes = players.stream(60, 3)
    return players.by_tickets(rec, raw, outcomes)[0]


def test_the_same_seed_and_key_give_the_same_draws() -> None:
    assert draws(seed=1) == draws(seed=1)
    assert draws(seed=1, key="a") == draws(seed=1, key="a")


@pytest.mark.parametrize(
    "options",
    [
        {"seed": 2},
        {"seed": -1},
        {"seed": 1 << 100},
        {"seed": 1, "key": "a"},
        {"seed": 1, "key": ""},
        {"seed": 1, "key": 1},
        {"seed": 1, "key": "1"},
        {"seed": 1, "key": 0},
    ],
    ids=str,
)
def test_another_seed_or_key_gives_other_draws(options: dict[str, object]) -> None:
    assert draws(**options) != draws(seed=1)


def test_keys_that_look_alike_are_told_apart() -> None:
    assert draws(seed=1, key=1) != draws(seed=1, key="1")
    assert draws(seed=12, key=3) != draws(seed=1, key=23)


def test_without_a_seed_the_draws_are_nobodys_guess() -> None:
    assert draws() != draws()
    assert draws(key="a") != draws(key="a")


def test_an_outcome_never_changes_a_coin_that_was_thrown() -> None:
    one, other = (Recalibrator(resolution=9, buckets=1, seed=4) for _ in range(2))
    kept = [(one.forecast(0.5), other.forecast(0.5)) for _ in range(20)]
    for (mine, its), y in zip(kept[::-1], [0, 1] * 10, strict=True):
        one.observe(mine, y)
        other.observe(its, 1 - y)
    assert [a.index for a, _ in kept] == [b.index for _, b in kept]
    assert one.forecast(0.5).clock == other.forecast(0.5).clock == 20


@pytest.mark.parametrize("single", [True, False])
def test_coins_of_single_rounds_are_those_of_a_batch(single: bool) -> None:
    rounds = 227
    outcomes = [k * k % 7 % 2 for k in range(rounds)]
    rec, batch = (Recalibrator(buckets=1, seed=4) for _ in range(2))
    drawn = []
    for outcome in outcomes:
        if single:
            drawn.append(rec.predict_one(0.4))
            rec.learn_one(0.4, outcome)
        else:
            ticket = rec.forecast(0.4)
            drawn.append(ticket.value)
            rec.observe(ticket, outcome)
    assert drawn == batch.replay([0.4] * rounds, outcomes).forecast.tolist()
    assert rec == batch


def interrupted(step: Callable[..., object], after: bool) -> Callable[..., object]:
    """Return a step that is interrupted before it begins, or once it is done."""

    def broken(*given: object) -> None:
        if after:
            step(*given)
        raise KeyboardInterrupt

    return broken


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["issue", "commit"])
def test_an_interrupt_leaves_the_coins_in_step(step: str, after: bool) -> None:
    rec, other = (Recalibrator(buckets=1, seed=4) for _ in range(2))
    for each in (rec, other):
        each.forecast(0.5)
    rows, name = rec._rows, f"plain_{step}"
    whole = getattr(rows, name)
    setattr(rows, name, interrupted(whole, after))
    for seen in (True, False):
        with pytest.raises(KeyboardInterrupt):
            rec.forecast(0.5) if step == "issue" else rec.learn_one(0.5, 1)
        # A forecast of which nobody got the ticket is withdrawn.
        if after and step == "commit":
            other.learn_one(0.5, 1)
        if seen:
            assert rec.predict_one(0.5) == other.predict_one(0.5)
    setattr(rows, name, whole)
    for k in range(200):
        assert rec.predict_one(0.5) == other.predict_one(0.5)
        rec.learn_one(0.5, k % 2)
        other.learn_one(0.5, k % 2)
        mine, its = rec.forecast(0.5), other.forecast(0.5)
        assert (mine.clock, mine.index) == (its.clock, its.index)


@pytest.mark.parametrize("name", calibrators.names())
def test_a_ticket_that_comes_back_by_its_id_knows_its_coin(name: str) -> None:
    rec = Recalibrator(name, resolution=5, buckets=3, seed=4)
    made = [rec.forecast(p, id=f"n{k}" if k % 2 else None) for k, p in enumerate([0.1, 0.5] * 9)]
    coins = [rec.coin_of(ticket) for ticket in made]
    again = Recalibrator.from_bytes(rec.to_bytes())
    assert [again.coin_of(ticket.id) for ticket in made] == coins
    revived = [again.observe(ticket.id, 1) for ticket in made]
    assert [again.coin_of(ticket) for ticket in revived] == coins
    assert [ticket.clock for ticket in revived] == [ticket.clock for ticket in made]


def test_compiled_steps_refuse_rounds_beyond_what_fits() -> None:
    rec = Recalibrator(seed=4)
    with players.machine(rec.spec.program):
        rec.compile()
    rec._rows.capacity = rec._rows.state()[0][CAPACITY] = 1
    rec.observe(rec.forecast(0.5), 1)
    before = rec.to_bytes()
    for call in (lambda: rec.forecast(0.5), lambda: rec.learn_one(0.5, 1)):
        with pytest.raises(InvalidInput, match="rounds must be at most 1"):
            call()
        assert rec.to_bytes() == before


@pytest.mark.plain
def test_a_stream_with_the_secret_of_an_older_one_has_its_coins_many_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    older, alone = Recalibrator(buckets=1, seed=11), list[object]()
    for k in range(CHUNK + 200):
        older.observe(older.forecast(0.4), k & 1)
    single = module.secret_coin
    monkeypatch.setattr(module, "secret_coin", lambda *told: alone.append(told) or single(*told))
    younger = Recalibrator(buckets=1, seed=11)
    for k in range(500):
        younger.observe(younger.forecast(0.4), k & 1)
    assert len(alone) < 200
