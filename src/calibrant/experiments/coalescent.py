"""One block of the genome: its history, published markers of disease, and who inherits what.

One row a marker: the odds ratio of one copy of its minor allele, and how frequent that allele
is in healthy people of European descent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from calibrant.core.arrays import Bits, Reals, Words
from calibrant.errors import needed

if TYPE_CHECKING:
    from msprime import Demography
    from tskit import TreeSequence


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


Alleles = NDArray[np.int8]

MUTATION: Final = 1.25e-8
"""Mutations a base pair and generation."""
RAREST: Final = 0.01
"""Minor alleles below this frequency do not pass quality control."""
CANDIDATES: Final = 100
"""Sites among which two that exclude each other are looked for."""


def history_of(size: int, length: int, recombination: float, rng: Generator) -> TreeSequence:
    """Simulate how the haplotypes of ``size`` people came about, with mutations."""
    msprime = _msprime()
    seeds = rng.integers(1, 2**31, 2).tolist()
    ancestry = msprime.sim_ancestry(
        [msprime.SampleSet(size, population="CEU")],
        demography=out_of_africa(),
        sequence_length=length,
        recombination_rate=recombination,
        random_seed=seeds[0],
    )
    model = msprime.BinaryMutationModel()
    return msprime.sim_mutations(ancestry, rate=MUTATION, model=model, random_seed=seeds[1])


def _msprime() -> Any:
    told = "simulated genotypes need msprime, which is not installed"
    return needed("msprime", told, "experiments")


def out_of_africa() -> Demography:
    """Return how Europeans came about; a generation is 25 years.

    References
    ----------
    Gutenkunst et al., "Inferring the joint demographic history of multiple populations from
    multidimensional SNP frequency data" (2009), table 1.
    """
    made: Demography = _msprime().Demography()
    split, exit_, growth = 21_200 / 25, 140_000 / 25, 220_000 / 25
    for name, first, rate in (("CEU", 1000, 0.004), ("CHB", 510, 0.0055)):
        now = first * math.exp(rate * split)
        made.add_population(name=name, initial_size=now, growth_rate=rate)
    for name, size in (("YRI", 12_300), ("OOA", 2100), ("AMH", 12_300), ("ANC", 7300)):
        made.add_population(name=name, initial_size=size)
    for pair, rate in (("CEU CHB", 9.6e-5), ("YRI CHB", 1.9e-5), ("YRI CEU", 3e-5)):
        made.set_symmetric_migration_rate(pair.split(), rate)
    made.add_population_split(time=split, derived=["CEU", "CHB"], ancestral="OOA")
    made.add_symmetric_migration_rate_change(time=split, populations=["YRI", "OOA"], rate=25e-5)
    made.add_population_split(time=exit_, derived=["YRI", "OOA"], ancestral="AMH")
    made.add_population_split(time=growth, derived=["AMH"], ancestral="ANC")
    return made


def frequencies_of(history: TreeSequence) -> Reals:
    """Return how frequent the younger allele is at each site; 0 if it arose more than once."""
    found = np.zeros(history.num_sites)
    for tree in history.trees():
        for site in tree.sites():
            if len(site.mutations) == 1:
                found[site.id] = tree.num_samples(site.mutations[0].node)
    return np.asarray(found / history.num_samples)


def haplotypes_of(history: TreeSequence, sites: Words) -> Alleles:
    """Return the alleles of every haplotype at these sites: one row a site, in their order."""
    order = np.argsort(sites)
    others = np.setdiff1d(np.arange(history.num_sites), sites)
    kept = history.delete_sites(others, record_provenance=False)
    alleles = np.empty((len(sites), history.num_samples), np.int8)
    alleles[order] = kept.genotype_matrix()
    return alleles


# Which sites.


def causal_sites(history: TreeSequence, frequencies: Reals, loci: tuple[Locus, ...]) -> Words:
    """Return for each marker a site in the middle whose younger allele is as frequent.

    Those of HLA are two forms of one gene: their sites are such that hardly a haplotype has
    the younger allele of both.
    """
    nearest = [_nearest(history, frequencies, locus.frequency) for locus in loci]
    if loci == HLA:
        return _exclusive(history, frequencies, *nearest)
    chosen: list[int] = []
    for candidates in nearest:
        chosen.append(next(site for site in candidates.tolist() if site not in chosen))
    return np.array(chosen, np.int64)


def _nearest(history: TreeSequence, frequencies: Reals, target: float) -> Words:
    places, length = history.tables.sites.position, history.sequence_length
    outside = abs(places / length - 0.5) > 1 / 6
    distance = np.abs(frequencies - target) + outside
    return np.argsort(distance, kind="stable")[:CANDIDATES]


def _exclusive(history: TreeSequence, shares: Reals, first: Words, second: Words) -> Words:
    """Return the pair that meets least often; among those, of the shares wanted."""
    one, two = (haplotypes_of(history, sites).astype(np.float64) for sites in (first, second))
    meets = one @ two.T / history.num_samples
    off = [
        np.abs(shares[sites] - locus.frequency)
        for sites, locus in zip((first, second), HLA, strict=True)
    ]
    k, m = np.unravel_index(np.argmin(meets + off[0][:, None] + off[1]), meets.shape)
    return np.array([first[k], second[m]], np.int64)


def seen_by_array(frequencies: Reals, causal: Words, count: int, rng: Generator) -> Words:
    """Return ``count`` sites in the order of the genome, the causal ones among them.

    Arrays hold variants that were first found in few people: a site is chosen in proportion to
    2p(1-p), the chance that two chromosomes differ there.
    """
    weights = frequencies * (1.0 - frequencies)
    weights[np.minimum(frequencies, 1.0 - frequencies) < RAREST] = 0.0
    weights[causal] = 0.0
    others = rng.choice(len(weights), count - len(causal), replace=False, p=weights / weights.sum())
    return np.sort(np.concatenate([causal, others]))


# Who inherits what.


def inherit(effects: Alleles, loci: tuple[Locus, ...], ill: Bits, rng: Generator) -> Words:
    """Return the two haplotypes of each subject, one after the other.

    A rare disease whose odds each allele multiplies leaves the two haplotypes of a patient
    independent, each drawn with weights ``odds_ratio ** allele``; healthy people draw evenly.
    Haplotypes that carry the same markers form a kind: first the number of each kind is drawn,
    then that many of its haplotypes, none twice unless there are too few.
    """
    ratios = np.array([locus.odds_ratio for locus in loci])
    kinds, kind_of, counts = np.unique(effects, axis=1, return_inverse=True, return_counts=True)
    tilted = counts * np.prod(ratios[:, None] ** kinds, axis=0)
    patients, healthy = 2 * int(ill.sum()), 2 * int((ill == 0).sum())
    wanted = rng.multinomial(patients, tilted / tilted.sum())
    others = rng.multinomial(healthy, counts / counts.sum())
    pairs = zip(wanted.tolist(), others.tolist(), strict=True)
    drawn = list(_drawn(kind_of.reshape(-1), pairs, rng))
    found = np.empty(2 * len(ill), np.int64)
    place = np.repeat(ill, 2) == 1
    found[place] = rng.permutation(np.concatenate([mine for mine, _ in drawn]))
    found[~place] = rng.permutation(np.concatenate([theirs for _, theirs in drawn]))
    return found


def _drawn(
    kind_of: Words, pairs: Iterator[tuple[int, int]], rng: Generator
) -> Iterator[tuple[Words, Words]]:
    """Yield the haplotypes of each kind that patients get, and that healthy people get."""
    for kind, (mine, theirs) in enumerate(pairs):
        members = np.flatnonzero(kind_of == kind)
        chosen = rng.choice(members, mine + theirs, replace=mine + theirs > len(members))
        yield chosen[:mine], chosen[mine:]
