"""Genotypes of patients and healthy people, simulated: linkage, array and odds ratios as published.

The genome is cut into blocks that are inherited independently.  Each is a coalescent simulation
(msprime) of a population of European descent, from which an array sees some common SNPs.  In a
block that holds markers of the disease, more haplotypes are simulated than needed and patients
draw theirs in proportion to the odds ratios.  Every block has a seed and a file of its own, so
an interrupted run goes on where it stopped, and several processes make the same files as one.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Bits, Words
from calibrant.errors import InvalidInput, needed
from calibrant.experiments import coalescent
from calibrant.experiments.coalescent import HLA, LOCI, Alleles, Locus
from calibrant.simulate.games import Progress

MISSING: Final = -127
"""What stands for an unknown genotype in arrays of int8."""
MAGIC: Final = 3
"""Bytes before the genotypes in a .bed file."""
AT_ONCE: Final = 1 << 28
"""Bytes of genotypes in memory at a time."""
CONTROL, CASE = "1", "2"


@dataclass(frozen=True, eq=False)
class BedFile:
    """Genotypes on disk, of people who are known to be ill or healthy.

    Attributes
    ----------
    path
        The .bed file; .bim and .fam lie beside it.
    subjects
        Rows of the file whose phenotype is known: 1 is healthy, 2 is ill.
    outcomes
        1 for each of them who is ill, else 0.
    snps
        How many SNPs there are.
    """

    path: Path
    subjects: Words
    outcomes: Bits
    snps: int

    @classmethod
    def open(cls, path: str | Path) -> BedFile:
        """Look at the file and those beside it, without reading genotypes.

        The suffix may be left out, as for PLINK itself.
        """
        place = _found(Path(path))
        with _bed_reader().open_bed(place) as opened:
            phenotypes, snps = np.asarray(opened.pheno), int(opened.sid_count)
        known = np.isin(phenotypes, (CONTROL, CASE))
        outcomes = (phenotypes[known] == CASE).astype(np.uint8)
        if len(set(outcomes.tolist())) < 2:
            told = f"{int(outcomes.sum())} cases among {len(outcomes)} subjects"
            raise InvalidInput(f"phenotypes in the .fam file must be both 1 and 2, got {told}")
        return cls(place, np.flatnonzero(known), outcomes, snps)

    def __len__(self) -> int:
        return len(self.subjects)

    def patients(self, order: Sequence[int] | Words) -> Iterator[Alleles]:
        """Yield the genotypes of one subject after the other, in this order.

        The file is stored SNP by SNP, so it is read once for every few hundred subjects: as
        many as fit into a quarter of a gigabyte.
        """
        rows = self.subjects[np.asarray(order, np.int64)]
        size = max(1, AT_ONCE // max(1, self.snps))
        with _bed_reader().open_bed(self.path) as opened:
            for first in range(0, len(rows), size):
                part = np.s_[rows[first : first + size], :]
                yield from opened.read(index=part, dtype="int8", order="C", num_threads=1)


def _found(path: Path) -> Path:
    """Return the .bed file, if all three are there."""
    place = path if path.suffix == ".bed" else path.with_name(f"{path.name}.bed")
    for suffix in (".bed", ".bim", ".fam"):
        if not (file := place.with_suffix(suffix)).is_file():
            told = "a .bed file with .bim and .fam beside it"
            raise InvalidInput(f"bed must be {told}, got no file {str(file)!r}")
    return place


def write_bed(path: Path, genotypes: Alleles, outcomes: Bits, **columns: Any) -> None:
    """Write genotypes, one row a subject, and ``columns`` of the .bim file."""
    names = [f"subject{k}" for k in range(1, len(outcomes) + 1)]
    phenotypes = [CASE if ill else CONTROL for ill in outcomes.tolist()]
    people = {"fid": names, "iid": names, "pheno": phenotypes}
    _bed_reader().to_bed(path, genotypes, properties=people | columns, num_threads=1)


def join_beds(parts: Sequence[Path], path: Path) -> None:
    """Put files with the same subjects one after the other: SNP by SNP, as they are stored."""
    shutil.copyfile(parts[0].with_suffix(".fam"), path.with_suffix(".fam"))
    with open(path.with_suffix(".bim"), "wb") as names, open(path, "wb") as genotypes:
        genotypes.write(parts[0].read_bytes()[:MAGIC])
        for part in parts:
            names.write(part.with_suffix(".bim").read_bytes())
            genotypes.write(part.read_bytes()[MAGIC:])


def _bed_reader() -> Any:
    told = "PLINK files need bed-reader, which is not installed"
    return needed("bed_reader", told, "experiments")


VERSION: Final = 1
"""Of the files: whoever changes what a seed gives counts this up."""
LENGTH: Final = 2_000_000
"""Base pairs of a block: correlation between SNPs dies out long before."""
RECOMBINATION: Final = 1e-8
HLA_SHARE: Final = 4
"""The block of HLA is this many times as long, with as many times the SNPs."""
HLA_RECOMBINATION: Final = 3e-9
"""A third of the usual: haplotypes of HLA are inherited whole over megabases."""
DENSITY: Final = 310.6
"""SNPs of the array in a block: 447,221 on a genome of 1,440 blocks."""
POOL: Final = 3
"""How many times as many haplotypes as needed patients can choose from."""
CHROMOSOMES: Final = 22


@dataclass(frozen=True)
class Cohort:
    """What to simulate; by default, the size of the paper's data.

    Examples
    --------
    >>> Cohort()
    Cohort(cases=1963, controls=1480, snps=447221, seed=1)
    >>> Cohort(cases=0)
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: cases must be a whole number of at least 1, got 0
    """

    cases: int = 1963
    controls: int = 1480
    snps: int = 447_221
    seed: int = 1

    def __post_init__(self) -> None:
        check.whole(self.cases, "cases", low=1)
        check.whole(self.controls, "controls", low=1)
        check.whole(self.snps, "snps", low=100)
        check.whole(self.seed, "seed", low=0)

    @property
    def subjects(self) -> int:
        """Patients and healthy people together."""
        return self.cases + self.controls

    @property
    def name(self) -> str:
        """What its files are called: nobody mistakes one cohort's files for another's."""
        made = f"t1d-{self.cases}-of-{self.subjects}x{self.snps}"
        return f"{made}-seed{self.seed}-v{VERSION}"

    def outcomes(self) -> Bits:
        """Return who is ill, in an order drawn by the seed."""
        ill = np.zeros(self.subjects, np.uint8)
        ill[: self.cases] = 1
        return np.random.default_rng([self.seed, 0]).permutation(ill)


@dataclass(frozen=True)
class Block:
    """A stretch of a chromosome that is inherited independently of all others.

    Attributes
    ----------
    number
        Its seed, with the cohort's.
    chromosome, start, length
        Where it lies, in base pairs.
    snps
        How many SNPs the array has there.
    loci
        The markers of the disease in it.
    recombination
        Rate a base pair and generation.
    """

    number: int
    chromosome: int
    start: int
    length: int
    snps: int
    loci: tuple[Locus, ...]
    recombination: float = RECOMBINATION


def layout(cohort: Cohort) -> list[Block]:
    """Return the blocks of a cohort, by chromosome and position.

    Examples
    --------
    >>> blocks = layout(Cohort())
    >>> len(blocks), sum(block.snps for block in blocks)
    (1437, 447221)
    >>> [block.snps for block in blocks if block.loci == HLA]
    [1242]
    """
    causal = list(_by_gene())
    shares = max(len(causal) + HLA_SHARE - 1, round(cohort.snps / DENSITY))
    nulls = shares - len(causal) - HLA_SHARE + 1
    where = [(1 + k * CHROMOSOMES // nulls, ()) for k in range(nulls)]
    ordered = sorted([*((loci[0].chromosome, loci) for loci in causal), *where], key=lambda b: b[0])
    return list(_placed(ordered, cohort.snps, shares))


def _by_gene() -> Iterator[tuple[Locus, ...]]:
    """Yield markers that share a block: those of one gene, and both of HLA."""
    yield HLA
    others = [locus for locus in LOCI if locus not in HLA]
    for gene in dict.fromkeys(locus.gene for locus in others):
        yield tuple(locus for locus in others if locus.gene == gene)


def _placed(ordered: list[tuple[int, tuple[Locus, ...]]], snps: int, parts: int) -> Iterator[Block]:
    """Yield blocks one after the other; SNPs are dealt out evenly to parts of the genome."""
    done, start, last = 0, 0, 0
    for number, (chromosome, loci) in enumerate(ordered, 1):
        size = HLA_SHARE if loci == HLA else 1
        start = start if chromosome == last else 0
        room = snps * (done + size) // parts - snps * done // parts
        rate = HLA_RECOMBINATION if loci == HLA else RECOMBINATION
        yield Block(number, chromosome, start, size * LENGTH, room, loci, rate)
        done, start, last = done + size, start + size * LENGTH, chromosome


# One block.


@dataclass(frozen=True, eq=False)
class Stretch:
    """What a block holds: genotypes with one row a subject, and the columns of the .bim file."""

    genotypes: Alleles
    columns: dict[str, list[Any]]


def genotypes_of(cohort: Cohort, block: Block) -> Stretch:
    """Simulate one block of a cohort.

    Examples
    --------
    >>> cohort = Cohort(cases=30, controls=20, snps=400)
    >>> made = genotypes_of(cohort, layout(cohort)[0])
    >>> made.genotypes.shape, made.columns["sid"][:2]
    ((50, 18), ['snp1_1', 'snp1_2'])
    """
    rng = np.random.default_rng([cohort.seed, block.number])
    people = cohort.subjects * (POOL if block.loci else 1)
    history = coalescent.history_of(people, block.length, block.recombination, rng)
    frequencies = coalescent.frequencies_of(history)
    causal = coalescent.causal_sites(history, frequencies, block.loci)
    seen = coalescent.seen_by_array(frequencies, causal, block.snps, rng)
    haplotypes = coalescent.haplotypes_of(history, seen)
    effects = haplotypes[np.searchsorted(seen, causal)]
    drawn = haplotypes[:, coalescent.inherit(effects, block.loci, cohort.outcomes(), rng)]
    places = history.tables.sites.position[seen].astype(np.int64)
    return _stretch(block, drawn[:, 0::2] + drawn[:, 1::2], places, np.searchsorted(seen, causal))


def _stretch(block: Block, counts: Alleles, places: Words, causal: Words) -> Stretch:
    """Count minor alleles, and name the SNPs."""
    common = counts.mean(axis=1) > 1.0
    counts[common] = 2 - counts[common]
    names = [f"snp{block.number}_{k}" for k in range(1, len(counts) + 1)]
    for k, locus in zip(causal.tolist(), block.loci, strict=True):
        names[k] = locus.marker
    columns: dict[str, list[Any]] = {"chromosome": [str(block.chromosome)] * len(counts)}
    columns |= {"sid": names, "bp_position": (block.start + 1 + places).tolist()}
    alleles = {"allele_1": ["A"] * len(counts), "allele_2": ["G"] * len(counts)}
    return Stretch(np.ascontiguousarray(counts.T), columns | alleles)


# All of them.


def generate(
    cohort: Cohort,
    place: str | Path,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """Return the .bed file of a cohort in directory ``place``, made if it is not there yet.

    Parameters
    ----------
    cohort
        What to simulate.
    place
        Where the files are kept; made if need be.
    workers
        How many processes; by default one a core.  With more than one, a script that calls
        this must do so below ``if __name__ == "__main__":``.
    progress
        Called with how many blocks are done and how many there are.

    Notes
    -----
    A file counts as made when it has its name, which it gets when it is whole: whoever
    interrupts this and calls it again loses the blocks under way, at most.
    """
    made = Path(place) / f"{cohort.name}.bed"
    if made.is_file():
        return made
    parts = Path(place) / f"{cohort.name}.blocks"
    parts.mkdir(parents=True, exist_ok=True)
    blocks = layout(cohort)
    for done, _ in enumerate(_each(cohort, blocks, parts, workers), 1):
        if progress is not None:
            progress(done, len(blocks))
    draft = made.with_suffix(".part.bed")
    join_beds([_part(parts, block) for block in blocks], draft)
    _publish(draft, made)
    shutil.rmtree(parts)
    return made


def _each(cohort: Cohort, blocks: list[Block], parts: Path, workers: int | None) -> Iterator[None]:
    """Make every block; yield after each."""
    workers = check.whole(workers or os.cpu_count(), "workers", low=1)
    make = functools.partial(_make, cohort, parts)
    if workers == 1:
        yield from map(make, blocks)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        yield from pool.map(make, blocks)


def _part(parts: Path, block: Block) -> Path:
    return parts / f"{block.number:05}.bed"


def _make(cohort: Cohort, parts: Path, block: Block) -> None:
    """Write the file of a block, unless it is there."""
    whole = _part(parts, block)
    if whole.is_file():
        return
    made, draft = genotypes_of(cohort, block), whole.with_suffix(".part.bed")
    write_bed(draft, made.genotypes, cohort.outcomes(), **made.columns)
    _publish(draft, whole)


def _publish(draft: Path, whole: Path) -> None:
    """Give the files of ``draft`` their names; the .bed file, which tells they are whole, last."""
    for suffix in (".fam", ".bim", ".bed"):
        draft.with_suffix(suffix).replace(whole.with_suffix(suffix))
