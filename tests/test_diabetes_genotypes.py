"""Simulated genotypes: linkage as in people, odds ratios as published, files that resume."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.errors import InvalidInput, MissingExtra
from calibrant.experiments import coalescent, genotypes
from calibrant.experiments.coalescent import HLA, LOCI, Locus
from calibrant.experiments.genotypes import Cohort, generate, genotypes_of, layout

pytest.importorskip("msprime", reason="needs the extra experiments")
pytest.importorskip("bed_reader", reason="needs the extra experiments")

SMALL = Cohort(cases=14, controls=11, snps=100, seed=3)


# The plan.


@given(st.integers(100, 20_000))
def test_blocks_hold_every_snp_and_every_marker_once(snps: int) -> None:
    blocks = layout(Cohort(snps=snps))
    assert sum(block.snps for block in blocks) == snps
    assert sorted(locus.marker for block in blocks for locus in block.loci) == sorted(
        locus.marker for locus in LOCI
    )
    assert all(block.snps > len(block.loci) for block in blocks)


def test_blocks_lie_one_after_the_other_on_all_chromosomes() -> None:
    blocks = layout(Cohort())
    assert {block.chromosome for block in blocks} == set(range(1, 23))
    for one, two in itertools.pairwise(blocks):
        if one.chromosome == two.chromosome:
            assert two.start == one.start + one.length
        else:
            assert (one.chromosome + 1, two.start) == (two.chromosome, 0)


def test_the_paper_has_as_many_subjects_and_cases() -> None:
    outcomes = Cohort().outcomes()
    assert (len(outcomes), outcomes.sum(), Cohort().snps) == (3443, 1963, 447_221)
    assert (outcomes == Cohort().outcomes()).all()
    assert (outcomes != Cohort(seed=2).outcomes()).any()


def test_no_two_cohorts_share_a_name() -> None:
    others = [Cohort(cases=5), Cohort(controls=5), Cohort(snps=500), Cohort(seed=5), Cohort()]
    assert len({cohort.name for cohort in others}) == 5


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"cases": 0}, "cases must be a whole number of at least 1, got 0"),
        ({"controls": 0}, "controls must be a whole number of at least 1, got 0"),
        ({"snps": 99}, "snps must be a whole number of at least 100, got 99"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
    ],
    ids=["cases", "controls", "snps", "seed"],
)
def test_a_cohort_that_cannot_be_is_refused(change, told) -> None:
    with pytest.raises(InvalidInput) as caught:
        Cohort(**change)
    assert str(caught.value) == told


# One block.


def test_europeans_are_as_many_as_published() -> None:
    known = {found.name: found for found in coalescent.out_of_africa().populations}
    assert round(known["CEU"].initial_size) == 29_725
    assert round(known["CHB"].initial_size) == 54_090
    assert known["ANC"].initial_size == 7300


@pytest.fixture(scope="module")
def block_of():
    """Blocks of a cohort of 300, each simulated once."""
    cohort = Cohort(cases=170, controls=130, snps=20_000, seed=2)
    blocks, made = layout(cohort), {}

    def simulate(gene: str | None):
        if gene not in made:
            matching = (b for b in blocks if (b.loci[0].gene if b.loci else None) == gene)
            block = next(matching)
            made[gene] = cohort, block, genotypes_of(cohort, block)
        return made[gene]

    return simulate


@pytest.mark.parametrize("gene", [None, "IL2RA", "HLA-DR3"])
def test_a_block_counts_minor_alleles_in_the_order_of_the_genome(block_of, gene) -> None:
    cohort, block, made = block_of(gene)
    assert made.genotypes.shape == (cohort.subjects, block.snps)
    assert made.genotypes.dtype == np.int8
    assert set(np.unique(made.genotypes)) == {0, 1, 2}
    assert made.genotypes.mean(axis=0).max() <= 1.0
    places = made.columns["bp_position"]
    assert places == sorted(places)
    assert block.start < places[0] <= places[-1] <= block.start + block.length
    assert {locus.marker for locus in block.loci} <= set(made.columns["sid"])
    assert len(set(made.columns["sid"])) == block.snps


def test_array_snps_are_common_and_of_all_frequencies(block_of) -> None:
    _, _, made = block_of(None)
    frequencies = made.genotypes.mean(axis=0) / 2
    assert frequencies.min() >= coalescent.RAREST
    # Random sites of the genome have a mean of 0.15.
    assert 0.2 < frequencies.mean() < 0.35


def squared_correlation(made, near: float, far: float) -> float:
    """The mean over pairs of SNPs between ``near`` and ``far`` base pairs apart."""
    places = np.array(made.columns["bp_position"], float)
    apart = np.abs(places[:, None] - places)
    pairs = (apart >= near) & (apart < far) & (apart > 0)
    return float((np.corrcoef(made.genotypes.T) ** 2)[pairs].mean())


def test_neighbours_go_together_and_distant_snps_do_not(block_of) -> None:
    _, _, made = block_of(None)
    assert squared_correlation(made, 0, 2e4) > 0.2
    # 300 subjects leave 1/300 by chance.
    assert squared_correlation(made, 1e6, 2e6) < 0.02


def test_haplotypes_of_hla_are_longer(block_of) -> None:
    far = {gene: squared_correlation(block_of(gene)[2], 2e5, 5e5) for gene in (None, "HLA-DR3")}
    assert far["HLA-DR3"] > 2 * far[None]


def test_a_block_depends_on_its_seed_and_number_alone() -> None:
    block = layout(SMALL)[3]
    one, again = genotypes_of(SMALL, block), genotypes_of(SMALL, block)
    assert (one.genotypes == again.genotypes).all()
    assert one.columns == again.columns
    other = genotypes_of(Cohort(cases=14, controls=11, snps=100, seed=4), block)
    assert other.columns["bp_position"] != one.columns["bp_position"]


def test_causal_sites_are_in_the_middle_and_as_frequent_as_published(block_of) -> None:
    rng = np.random.default_rng(5)
    history = coalescent.history_of(400, 2_000_000, 1e-8, rng)
    frequencies = coalescent.frequencies_of(history)
    loci = tuple(locus for locus in LOCI if locus.gene == "IL2RA")
    sites = coalescent.causal_sites(history, frequencies, loci)
    alleles = coalescent.haplotypes_of(history, sites)
    assert len(set(sites.tolist())) == 2
    for locus, row, site in zip(loci, alleles, sites, strict=True):
        assert row.mean() == pytest.approx(locus.frequency, abs=0.02)
        assert row.mean() == pytest.approx(frequencies[site])
        assert 1 / 3 <= history.site(int(site)).position / 2_000_000 <= 2 / 3


def test_two_markers_of_the_same_frequency_get_two_sites() -> None:
    history = coalescent.history_of(50, 500_000, 1e-8, np.random.default_rng(1))
    frequencies = coalescent.frequencies_of(history)
    twins = (Locus(1, "A", "a", 2.0, 0.3), Locus(1, "A", "b", 0.5, 0.3))
    assert len(set(coalescent.causal_sites(history, frequencies, twins).tolist())) == 2


def test_no_haplotype_is_both_forms_of_hla() -> None:
    history = coalescent.history_of(300, 8_000_000, 3e-9, np.random.default_rng(5))
    frequencies = coalescent.frequencies_of(history)
    one, two = coalescent.haplotypes_of(history, coalescent.causal_sites(history, frequencies, HLA))
    assert one.mean() == pytest.approx(0.09, abs=0.02)
    assert two.mean() == pytest.approx(0.16, abs=0.02)
    assert (one * two).mean() < 0.005


# Who inherits what.


def frequencies_in(effects, loci, ill, seed):
    drawn = coalescent.inherit(effects, loci, ill, np.random.default_rng(seed))
    carried = effects[:, drawn]
    mine = np.repeat(ill, 2) == 1
    return drawn, carried[:, mine].mean(axis=1), carried[:, ~mine].mean(axis=1)


def test_patients_carry_markers_as_the_odds_ratios_say() -> None:
    rng = np.random.default_rng(6)
    loci = tuple(locus for locus in LOCI if locus.gene == "IL2RA")
    effects = (rng.random((2, 60_000)) < [[0.113], [0.246]]).astype(np.int8)
    ill = rng.permutation(np.repeat(np.array([0, 1], np.uint8), 4000))
    drawn, cases, controls = frequencies_in(effects, loci, ill, 7)
    assert len(set(drawn.tolist())) == 16_000
    for locus, case, control in zip(loci, cases, controls, strict=True):
        ratio = case / (1 - case) / (control / (1 - control))
        # 8,000 haplotypes each: a standard deviation of the logarithm below 0.06.
        assert abs(np.log(ratio / locus.odds_ratio)) < 0.2


def test_the_forms_of_hla_are_as_frequent_in_patients_as_published() -> None:
    kinds = np.repeat(np.arange(3), [900, 1600, 7500])
    effects = np.array([kinds == 0, kinds == 1]).astype(np.int8)
    ill = np.repeat(np.array([0, 1], np.uint8), 1000)
    _, cases, controls = frequencies_in(effects, HLA, ill, 8)
    # Howson et al. found 0.25 and 0.37 in patients, 0.09 and 0.16 in others.
    assert cases == pytest.approx([0.24, 0.39], abs=0.035)
    assert controls == pytest.approx([0.09, 0.16], abs=0.025)


def test_where_haplotypes_are_too_few_some_are_used_twice() -> None:
    effects = np.array([[1, 0, 0, 0]], np.int8)
    locus = Locus(1, "X", "x", 1000.0, 0.25)
    ill = np.ones(20, np.uint8)
    drawn = coalescent.inherit(effects, (locus,), ill, np.random.default_rng(1))
    assert (drawn == 0).sum() > 30


# Files.


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    return generate(SMALL, tmp_path_factory.mktemp("whole"), workers=1)


def contents(path: Path) -> list[bytes]:
    return [path.with_suffix(suffix).read_bytes() for suffix in (".bed", ".bim", ".fam")]


def test_the_files_hold_what_was_simulated(whole: Path) -> None:
    opened = genotypes.BedFile.open(whole)
    assert (opened.outcomes == SMALL.outcomes()).all()
    assert opened.snps == 100
    rows, first = np.array(list(opened.patients(range(25)))), 0
    for block in layout(SMALL):
        if block.number in (1, 4, 22):
            made = genotypes_of(SMALL, block).genotypes
            assert (rows[:, first : first + block.snps] == made).all()
        first += block.snps
    names = [line.split()[1] for line in whole.with_suffix(".bim").read_text().splitlines()]
    assert {locus.marker for locus in LOCI} <= set(names)
    assert sorted(path.suffix for path in whole.parent.iterdir()) == [".bed", ".bim", ".fam"]


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, monkeypatch) -> None:
    made = []

    def counted(cohort, block):
        made.append(block.number)
        drawn = np.random.default_rng(block.number).integers(0, 3, (25, block.snps))
        return genotypes.Stretch(drawn.astype(np.int8), {})

    def stop(done: int, total: int) -> None:
        if done == 9:
            raise KeyboardInterrupt

    monkeypatch.setattr(genotypes, "genotypes_of", counted)
    whole = generate(SMALL, tmp_path / "whole", workers=1)
    made.clear()
    with pytest.raises(KeyboardInterrupt):
        generate(SMALL, tmp_path, workers=1, progress=stop)
    assert not list(tmp_path.glob("*.bed"))
    path = generate(SMALL, tmp_path, workers=1)
    assert made == [block.number for block in layout(SMALL)]
    assert contents(path) == contents(whole)


def test_a_file_that_is_there_is_not_made_again(whole, monkeypatch) -> None:
    monkeypatch.setattr(genotypes, "genotypes_of", None)
    assert generate(SMALL, whole.parent) == whole


def test_several_processes_make_the_same_files_and_tell_how_far_they_are(tmp_path, whole) -> None:
    told: list[tuple[int, int]] = []
    path = generate(SMALL, tmp_path, workers=2, progress=lambda *so_far: told.append(so_far))
    count = len(layout(SMALL))
    assert told == [(k, count) for k in range(1, count + 1)]
    assert contents(path) == contents(whole)


def test_workers_must_be_a_number_above_zero(tmp_path) -> None:
    with pytest.raises(InvalidInput, match=r"^workers must be a whole number of at least 1, got -"):
        generate(SMALL, tmp_path, workers=-2)


@pytest.mark.parametrize(
    ("package", "told"),
    [
        ("msprime", 'simulated genotypes need msprime, which is not installed: pip install ".[exp'),
        ("bed_reader", 'PLINK files need bed-reader, which is not installed: pip install ".[exp'),
    ],
)
def test_without_the_extra_it_is_named(package, told, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra) as caught:
        generate(SMALL, tmp_path, workers=1)
    assert str(caught.value).startswith(told)


def test_importing_the_generator_needs_no_extra() -> None:
    code = (
        "import sys; sys.modules['msprime'] = sys.modules['bed_reader'] = None;"
        "import calibrant.experiments.diabetes, calibrant.experiments.genotypes"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": ""})
