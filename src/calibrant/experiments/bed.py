"""Genotypes in PLINK's .bed, .bim and .fam: written block by block, read patient by patient."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Bits, Words
from calibrant.errors import InvalidInput, MissingExtra

Alleles = NDArray[np.int8]

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


def write(path: Path, genotypes: Alleles, outcomes: Bits, **columns: Any) -> None:
    """Write genotypes, one row a subject, and ``columns`` of the .bim file."""
    names = [f"subject{k}" for k in range(1, len(outcomes) + 1)]
    phenotypes = [CASE if ill else CONTROL for ill in outcomes.tolist()]
    people = {"fid": names, "iid": names, "pheno": phenotypes}
    _bed_reader().to_bed(path, genotypes, properties=people | columns, num_threads=1)


def join(parts: Sequence[Path], path: Path) -> None:
    """Put files with the same subjects one after the other: SNP by SNP, as they are stored."""
    shutil.copyfile(parts[0].with_suffix(".fam"), path.with_suffix(".fam"))
    with open(path.with_suffix(".bim"), "wb") as names, open(path, "wb") as genotypes:
        genotypes.write(parts[0].read_bytes()[:MAGIC])
        for part in parts:
            names.write(part.with_suffix(".bim").read_bytes())
            genotypes.write(part.read_bytes()[MAGIC:])


def _bed_reader() -> Any:
    try:
        import bed_reader
    except ModuleNotFoundError as error:
        told = "PLINK files need bed-reader, which is not installed"
        raise MissingExtra(f'{told}: pip install "calibrant[experiments]"') from error
    return bed_reader
