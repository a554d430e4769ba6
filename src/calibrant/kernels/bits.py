"""Taking doubles apart and putting them together by their bits, for compiled code.

The same results as :func:`~calibrant.kernels.portable.split` and
:func:`~calibrant.kernels.portable.scaled`, whose ``frexp`` and ``ldexp`` cost machine code as
much as a whole logarithm.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from calibrant.kernels.portable import SQRT1_2

FRACTION: Final = 0xF_FFFF_FFFF_FFFF
HALF: Final = 0x3FE0_0000_0000_0000
NORMAL: Final = 2.2250738585072014e-308
TWO_64: Final = 18446744073709551616.0


def split(x: float) -> tuple[float, int]:
    """Return m and k with x = m 2**k and sqrt(1/2) < m <= sqrt(2), for 0 < x < inf.

    >>> split(3.0)
    (np.float64(0.75), np.int64(2))
    """
    tiny = x < NORMAL
    word = np.float64(x * TWO_64 if tiny else x).view(np.int64)
    k: Any = (word >> 52) - (1086 if tiny else 1022)
    m: Any = np.int64((word & FRACTION) | HALF).view(np.float64)
    down = m > SQRT1_2
    return m if down else m + m, k if down else k - 1


def scaled(x: float, k: int) -> float:
    """Return x 2**k for |k| <= 2000 where the result is a normal double.

    Two factors, because 2**1024 is none.

    >>> float(scaled(0.75, 2))
    3.0
    """
    half = k >> 1
    first = np.int64((half + 1023) << 52).view(np.float64)
    second = np.int64((k - half + 1023) << 52).view(np.float64)
    result: float = x * first * second
    return result


def lanes(count: int) -> int:
    """Return the next multiple of 4: so many doubles, compiled code computes at a time."""
    return (count + 3) // 4 * 4
