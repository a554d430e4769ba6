"""PLINK files: what was written is read, patient by patient, in any order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("bed_reader", reason="needs the extra experiments")

from calibrant.errors import InvalidInput
from calibrant.experiments import genotypes
from calibrant.experiments.genotypes import MISSING, BedFile
from calibrant.learners import OnlineL1SVM
from calibrant.metrics import auc

ILL = np.array([1, 0, 0, 1, 1, 0, 1], np.uint8)


def some_genotypes(snps: int = 11) -> np.ndarray:
    rng = np.random.default_rng(1)
    made = rng.integers(0, 3, (len(ILL), snps)).astype(np.int8)
    made[rng.random(made.shape) < 0.2] = MISSING
    return made


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "some.bed"
    genotypes.write_bed(path, some_genotypes(), ILL, sid=[f"snp{k}" for k in range(11)])
    return path


@pytest.mark.parametrize("at_once", [1, 30, 1 << 20], ids=["one by one", "two by two", "at once"])
def test_patients_come_back_in_the_order_asked_for(written, monkeypatch, at_once) -> None:
    monkeypatch.setattr(genotypes, "AT_ONCE", at_once)
    opened = BedFile.open(written)
    assert (len(opened), opened.snps) == (7, 11)
    assert (opened.outcomes == ILL).all()
    order = [6, 0, 3, 3, 1]
    rows = list(opened.patients(order))
    assert (np.array(rows) == some_genotypes()[order]).all()
    assert all(row.dtype == np.int8 and row.flags.c_contiguous for row in rows)


def test_nobody_is_read_if_nobody_is_asked_for(written) -> None:
    assert list(BedFile.open(written).patients([])) == []


def test_people_of_unknown_phenotype_are_left_out(written) -> None:
    fam = written.with_suffix(".fam")
    lines = [line.split() for line in fam.read_text().splitlines()]
    lines[1][-1], lines[4][-1] = "-9", "0"
    fam.write_text("".join("\t".join(line) + "\n" for line in lines))
    opened = BedFile.open(written)
    assert opened.subjects.tolist() == [0, 2, 3, 5, 6]
    assert opened.outcomes.tolist() == [1, 0, 1, 0, 1]
    assert (next(opened.patients([1])) == some_genotypes()[2]).all()


def test_a_file_in_which_nobody_is_healthy_is_refused(tmp_path) -> None:
    genotypes.write_bed(tmp_path / "ill.bed", some_genotypes(), np.ones(7, np.uint8))
    with pytest.raises(InvalidInput) as caught:
        BedFile.open(tmp_path / "ill.bed")
    told = "phenotypes in the .fam file must be both 1 and 2, got 7 cases among 7 subjects"
    assert str(caught.value) == told


@pytest.mark.parametrize("suffix", [".bed", ".bim", ".fam"])
def test_a_file_that_is_missing_is_named(written, suffix) -> None:
    gone = written.with_suffix(suffix)
    gone.unlink()
    with pytest.raises(InvalidInput) as caught:
        BedFile.open(str(written))
    assert str(caught.value) == (
        f"bed must be a .bed file with .bim and .fam beside it, got no file {str(gone)!r}"
    )


def test_the_suffix_may_be_left_out(written) -> None:
    assert BedFile.open(written.with_suffix("")).path == written


def test_a_name_may_have_dots(tmp_path) -> None:
    genotypes.write_bed(tmp_path / "wtccc.t1d.bed", some_genotypes(), ILL)
    assert BedFile.open(tmp_path / "wtccc.t1d").path == tmp_path / "wtccc.t1d.bed"


def test_joined_files_are_the_snps_of_one_after_those_of_the_other(tmp_path) -> None:
    parts = [tmp_path / "one.bed", tmp_path / "two.bed"]
    whole = some_genotypes()
    for path, columns in zip(parts, (np.s_[:, :4], np.s_[:, 4:]), strict=True):
        genotypes.write_bed(path, np.ascontiguousarray(whole[columns]), ILL)
    genotypes.join_beds(parts, tmp_path / "both.bed")
    opened = BedFile.open(tmp_path / "both.bed")
    assert (np.array(list(opened.patients(range(7)))) == whole).all()
    assert len((tmp_path / "both.bim").read_text().splitlines()) == 11


@pytest.fixture
def hapmap(fetched_dir: Path, tmp_path: Path) -> Path:
    """The real genotypes, with origin in the place of a disease: 2 is from Kenya or Nigeria."""
    place = fetched_dir / "genotypes"
    rows = (place / "hapmap3_relationships_w_pops.txt").read_text().splitlines()[1:]
    origin = {row.split()[1]: row.split()[-1] for row in rows}
    people = [line.split() for line in (place / "hapmap3.fam").read_text().splitlines()]
    for person in people:
        person[-1] = "2" if origin[person[1]] in {"YRI", "LWK", "MKK"} else "1"
    for suffix in (".bed", ".bim"):
        (tmp_path / f"hapmap{suffix}").symlink_to(place / f"hapmap3{suffix}")
    (tmp_path / "hapmap.fam").write_text("".join(" ".join(each) + "\n" for each in people))
    return tmp_path / "hapmap.bed"


def test_real_genotypes_tell_where_people_are_from(hapmap) -> None:
    opened = BedFile.open(hapmap)
    assert (len(opened), opened.snps, opened.outcomes.sum()) == (957, 14_389, 335)
    order = np.random.default_rng(1).permutation(957)[:300]
    rows = list(opened.patients(order))
    assert set(np.unique(rows)) == {MISSING, 0, 1, 2}
    forecasts = OnlineL1SVM(opened.snps).replay(rows, opened.outcomes[order])
    assert auc(forecasts[100:], opened.outcomes[order][100:]) > 0.98
