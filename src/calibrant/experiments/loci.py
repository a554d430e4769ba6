"""Where type 1 diabetes is written in the genome: published odds ratios and frequencies.

One row a marker: the odds ratio of one copy of its minor allele, and how frequent that allele
is in healthy people of European descent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Locus:
    """A marker that goes with the disease.

    Attributes
    ----------
    chromosome, gene, marker
        Where it is and what it is called.
    odds_ratio
        By how much one copy of the minor allele multiplies the odds.
    frequency
        Of the minor allele, in controls.
    """

    chromosome: int
    gene: str
    marker: str
    odds_ratio: float
    frequency: float


# Smyth et al. (2008), table 3: up to 8,064 cases and 9,339 British controls.
SMYTH: Final = (
    Locus(1, "PTPN22", "rs2476601", 2.05, 0.095),
    Locus(2, "IFIH1", "rs1990760", 0.86, 0.389),
    Locus(2, "CTLA4", "rs3087243", 0.82, 0.452),
    Locus(3, "CCR5", "rs333", 0.85, 0.119),
    Locus(4, "IL2", "rs2069763", 1.13, 0.329),
    Locus(5, "IL7R", "rs6897932", 0.89, 0.274),
    Locus(6, "BACH2", "rs11755527", 1.13, 0.465),
    Locus(10, "PRKCQ", "rs947474", 0.88, 0.187),
    Locus(10, "IL2RA", "rs12722495", 0.62, 0.113),
    Locus(10, "IL2RA", "rs11594656", 0.87, 0.246),
    Locus(11, "INS", "rs689", 0.42, 0.293),
    Locus(12, "ERBB3", "rs2292239", 1.31, 0.352),
    Locus(12, "SH2B3", "rs3184504", 1.28, 0.485),
    Locus(15, "CTSH", "rs3825932", 0.86, 0.318),
)

# Howson et al. (2011), tables 1 and 2, and for IKZF1 a study of 8,333 cases.
HOWSON: Final = (
    Locus(16, "CLEC16A", "rs12708716", 0.83, 0.38),
    Locus(2, "STAT4", "rs7574865", 1.23, 0.21),
    Locus(9, "GLIS3", "rs7020673", 0.88, 0.48),
    Locus(10, "RNLS", "rs10509540", 0.88, 0.26),
    Locus(7, "IKZF1", "rs10272724", 0.87, 0.28),
)

HLA: Final = (
    Locus(6, "HLA-DR3", "rs2187668", 5.36, 0.09),
    Locus(6, "HLA-DR4", "rs660895", 4.98, 0.16),
)
"""Two forms of one gene, each against all others: no haplotype carries both."""

LOCI: Final = (*SMYTH, *HOWSON, *HLA)
