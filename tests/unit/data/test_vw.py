"""Vowpal Wabbit's text: hashes, heads, namespaces; whatever the bytes, never a wrong row."""

import io
import itertools
import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils import murmurhash3_32
from slow_reading import as_dictionaries, is_plain, rows_of, slow_rows

from polyfm.data import ReadReport, TextFormatError, iter_vw, load_vw
from polyfm.data._reading import Cut, Reading, demands, iterate
from polyfm.data.lines import Demands
from polyfm.data.vw import VWLayout


def read(text, **options):
    return load_vw(io.BytesIO(text), dtype=np.float64, **options)


def column(name, space="", bits=18):
    """By the definition, with scikit-learn's hash."""
    seed = int(murmurhash3_32(space.encode(), 0, positive=True)) if space else 0
    if name.isdigit():
        return (int(name) + seed) % 2**bits
    return int(murmurhash3_32(name.encode(), seed, positive=True)) % 2**bits


def test_features_of_all_kinds():
    rows = read(b"1 2.5 0.1 'first|user tom age:3e1 |film:0.5 Alien 1979:2 | x\n-1 |user:2 tom\n")
    expected = {
        column("tom", "user"): 1.0,
        column("age", "user"): 30.0,
        column("Alien", "film"): 0.5,
        column("1979", "film"): 1.0,
        column("x"): 1.0,
    }
    assert rows_of(rows.X) == [expected, {column("tom", "user"): 2.0}]
    assert rows.X.shape == (2, 2**18)
    assert rows.y.tolist() == [1, -1]
    assert rows.weight.tolist() == [2.5, 1]
    assert rows.namespaces == ["user", "film", ""]
    fields = {c: k for c, k in enumerate(rows.fields.tolist()) if k >= 0}
    of_user = [column("tom", "user"), column("age", "user")]
    of_film = [column("Alien", "film"), column("1979", "film")]
    assert fields == dict.fromkeys(of_user, 0) | dict.fromkeys(of_film, 1) | {column("x"): 2}


def test_hashes_as_vowpal_wabbit_has_them():
    """What its own hash_space and hash_feature give, with 18 bits."""
    for (space, name), hashed in KNOWN_HASHES.items():
        X = read(f"1 |{space} {name}\n".encode()).X
        assert X.indices.tolist() == [hashed], (space, name)


KNOWN_HASHES = {
    ("", "x"): 170779,
    ("", "tom"): 129633,
    ("", "1979"): 1979,
    ("", "0"): 0,
    ("", "2^7"): 51859,
    ("", "naïve"): 34261,
    ("", "a_rather_long_name=value"): 93495,
    ("user", "x"): 32272,
    ("user", "tom"): 6570,
    ("user", "1979"): 17608,
    ("user", "0"): 15629,
    ("user", "2^7"): 243940,
    ("user", "naïve"): 27314,
    ("user", "a_rather_long_name=value"): 77507,
    ("film", "x"): 110675,
    ("film", "tom"): 167197,
    ("film", "1979"): 144658,
    ("film", "0"): 142679,
    ("film", "2^7"): 49711,
    ("film", "naïve"): 108707,
    ("film", "a_rather_long_name=value"): 189207,
    ("12", "x"): 98015,
    ("12", "tom"): 6047,
    ("12", "1979"): 1991,
    ("12", "0"): 12,
    ("12", "2^7"): 193681,
    ("12", "naïve"): 154423,
    ("12", "a_rather_long_name=value"): 70941,
    ("a_long_namespace", "x"): 25323,
    ("a_long_namespace", "tom"): 112096,
    ("a_long_namespace", "1979"): 135152,
    ("a_long_namespace", "0"): 133173,
    ("a_long_namespace", "2^7"): 246000,
    ("a_long_namespace", "naïve"): 81336,
    ("a_long_namespace", "a_rather_long_name=value"): 229674,
}


@pytest.mark.parametrize("bits", [1, 10, 24, 32])
def test_number_of_bits(bits):
    (batch,) = iter_vw(io.BytesIO(b"1 |a some words 123456789012 4294967299\n"), n_bits=bits)
    X = batch.X
    names = ("some", "words", "123456789012", "4294967299")
    assert X.shape == (1, 2**bits)
    assert set(X.indices.tolist()) == {column(name, "a", bits) for name in names}


def test_a_name_longer_than_a_word_of_digits():
    digits = "9" * 30
    assert read(f"1 | {digits}".encode()).X.indices[0] == int(digits) % 2**64 % 2**18


def test_nameless_features_are_counted():
    assert rows_of(read(b"1 | :2 :3\n").X) == [{0: 2.0, 1: 3.0}]


def test_features_that_meet_are_summed():
    assert rows_of(read(b"1 | a a:2 b:1\n").X) == [{column("a"): 3.0, column("b"): 1.0}]


@pytest.mark.parametrize(
    ("head", "label", "weight"),
    [
        ("1 ", 1, None),
        ("-1.5e0\t2 ", -1.5, 2),
        ("1 1 0.5 ", 1, None),
        ("1 0 tag", 1, 0),
        ("1 'tag ", 1, None),
        ("1 'tag", 1, None),
        ("1 2", 1, None),
        ("  3   0.5  ", 3, 0.5),
    ],
)
def test_heads(head, label, weight):
    rows = read(f"{head}| a\n".encode())
    assert rows.y.tolist() == [label]
    assert rows.weight is None if weight is None else rows.weight.tolist() == [weight]


def test_rows_without_labels():
    rows = read(b"| a\n'tag | a\n1 | a\n1| a\n", labels=False)
    assert rows.y is None
    assert rows.X.shape[0] == 4


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1 a b", "'1': no bar; features are written after a |"),
        ("| a", "'|': the label is missing; labels=False reads rows without"),
        ("1|a b", "'1': this is a tag, as it touches the bar; write a blank before the |"),
        ("one | a", "'one': the label is not a number"),
        ("1 x | a", "'x': the importance is not a number"),
        ("1 -1 | a", "'-1': the importance is negative"),
        ("1 1 nan | a", "'nan': the base is not finite"),
        ("1 1 1 1 | a", "'1': a fourth number before the bar"),
        ("1 | a:", "'a:': missing value after the colon"),
        ("1 | a:x", "'x': the value is not a number"),
        ("1 | a:1:2", "'1:2': the value is not a number"),
        ("1 | a:1e39", "value 1e+39 is too large for float32"),
        ("1 |b:1e20 a:1e20", "value 1e+40 is too large for float32"),
        ("1 |:2 a", "':2': a scale without the name of a namespace"),
        ("1 |b:x a", "'x': the scale is not a number"),
        ("1 |b: a", "'b:': missing scale after the colon"),
        ("1e999 | a", "'1e999': the label is too large"),
    ],
)
def test_faults(line, problem):
    with pytest.raises(TextFormatError, match="line 2: " + re.escape(problem)) as caught:
        load_vw(io.BytesIO(f"1 | a\n{line}\n".encode()))
    assert caught.value.column is not None


def test_more_namespaces_than_there_is_room_for_at_first():
    names = [f"n{k}" for k in range(300)]
    text = "".join(f"1 |{a} x |{b} y\n" for a, b in itertools.pairwise(names))
    rows = read(text.encode())
    assert rows.namespaces == names
    assert rows.X.shape[0] == 299


def test_batches_and_their_namespaces():
    report = ReadReport()
    text = b"1 3 |a x\n0 |b y\n1 |a x |c z\n"
    batches = list(iter_vw(io.BytesIO(text), batch_rows=2, report=report, n_bits=10))
    assert [b.n_rows for b in batches] == [2, 1]
    assert batches[0].weight.tolist() == [3, 1]
    assert batches[1].weight is None
    assert report.field_names == ["a", "b", "c"]
    assert report.fields[[column("y", "b", 10), column("z", "c", 10)]].tolist() == [1, 2]
    with pytest.raises(ValueError, match="n_bits must be from 1 to 32"):
        iter_vw(io.BytesIO(text), n_bits=33)


FUZZ = st.lists(
    st.sampled_from(
        [b"1", b"0.5", b"|", b"|", b"|a ", b"| ", b"|b:2 ", b"x", b"yz:3", b":", b" ", b" ", b"\n",
         b"\n", b"'", b"tag", b"\t", b"\r\n", b"-1", b"nan", b"12345678901", b"\x00", b"\xff",
         b"long_name_of_a_feature", b":1e400", b":1e-320", b"\xc3\xa9", b"#", b"e"]
    ),
    max_size=40,
).map(b"".join) | st.binary(max_size=60).filter(is_plain)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(FUZZ, st.booleans(), st.sampled_from([1, 9, 1 << 20]))
def test_any_bytes_give_the_rows_that_slow_reading_gives(text, labelled, block):
    report = ReadReport()
    asked = demands(labelled, True, 2**18, np.float64, auto=False)
    reading = Reading(VWLayout(18), asked, "skip", report, block=block)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batches = list(iterate(io.BytesIO(text), reading, None, Cut(3, None), 0))
    layout = VWLayout(18)
    slow = Demands(labelled, 0, 2**18, np.dtype(np.float64))

    def read_slowly(number, line):
        return layout.read_line("<BytesIO>", number, line, slow)

    rows, _, refused = slow_rows(text, read_slowly, comments=False)
    found = [row for batch in batches for row in rows_of(batch.X)]
    assert found == as_dictionaries(rows)
    weights = [w for b in batches for w in ([1.0] * b.n_rows if b.weight is None else b.weight)]
    assert weights == [row.weight for row in rows]
    if labelled:
        assert [y for batch in batches for y in batch.y] == [row.label for row in rows]
    assert (report.n_rows, report.n_skipped) == (len(rows), len(refused))
    if refused:
        assert str(report.first_error) == refused[0][1]


def test_fields_by_slow_reading_are_the_same():
    """A line that is left to slow reading has the namespaces of the others."""
    text = b"1 |a x |b y\n1 |c w:4.9e-324 |a z\n1 |b v |d u\n"
    rows = read(text)
    assert rows.namespaces == ["a", "b", "c", "d"]
    assert rows.fields[column("w", "c")] == 2
    assert rows.fields[column("z", "a")] == 0
    assert rows.X[1, column("w", "c")] == 5e-324
