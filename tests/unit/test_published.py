"""The published flat layout: round trips, the authors' way of reading, padding, files that are not what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import spdebench
from flat_files import read_flat
from spdebench.data.flat import LAYOUTS, guess_tags, write_flat
from spdebench.data.published import export_published, import_published
from spdebench.errors import UserError

TINY = {"points": 16, "truncation": 8}
DATASETS = {
    "phi41": {"frames": 4, "steps": 4, "sigma": 1.0, "kappa": 0.1},
    "phi41 dirichlet": {"frames": 4, "steps": 4, "boundary": "dirichlet"},
    "wave": {"frames": 4, "steps": 8},
    "wave dirichlet": {"frames": 4, "steps": 8, "boundary": "dirichlet"},
    "kpz": {"frames": 4, "steps": 4},
    "kdv": {"frames": 4, "steps": 4, "noise": "cylindrical"},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Each tiny dataset once."""
    folder = tmp_path_factory.mktemp("native")
    return {
        key: spdebench.open_dataset(
            spdebench.generate(spdebench.equation(key.split()[0], **TINY, **fields), n=5, seed=3, out=folder)
        )
        for key, fields in DATASETS.items()
    }


def frame(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path)


def rewrite(table: pd.DataFrame, path: Path) -> Path:
    table.to_parquet(path, index=False)
    return path


def fields(variant: str, n: int = 3, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Coordinates, W and sol of a 2-D variant as (N, T, X, Y) without padding."""
    rng = np.random.default_rng(seed)
    shape = (n, 7, 6, 6)
    sol = rng.standard_normal(shape).astype(np.float32)
    steps = rng.standard_normal((n, 6, 6, 6)).astype(np.float32)
    if variant == "ns":
        return {"T": np.linspace(0, 1, 7)}, steps, sol
    path = np.concatenate([np.zeros((n, 1, 6, 6)), np.cumsum(steps, axis=1, dtype=np.float64)], axis=1)
    x = np.arange(6) / 6
    return {"T": np.linspace(0, 0.025, 7), "X": x, "Y": x}, path, sol


def flat_file(path: Path, variant: str, n: int = 3) -> Path:
    coordinates, w, sol = fields(variant, n)
    return write_flat(path, LAYOUTS[variant], coordinates, [(w[:2], sol[:2]), (w[2:], sol[2:])], eps=32)


# --- round trips --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("key", DATASETS)
def test_native_published_native_is_the_same_dataset(made, key, tmp_path):
    ds = made[key]
    back = spdebench.open_dataset(import_published(export_published(ds, tmp_path), tmp_path / "in"))
    assert back.imported and len(back) == 5
    assert (back.grid.points, back.grid.boundary) == (ds.grid.points, ds.grid.boundary)
    assert (back.grid.lower, back.grid.upper) == (ds.grid.lower, ds.grid.upper)
    np.testing.assert_allclose(back.times, ds.times, rtol=1e-15)
    np.testing.assert_array_equal(back.u, ds.u)
    np.testing.assert_array_equal(back.u0, ds.u0)
    np.testing.assert_allclose(back.dw, ds.dw, rtol=1.2e-7, atol=1e-14)
    assert back.identity["published"]["variant"] == ("kdv" if key == "kdv" else "1d")
    assert back.identity["published"]["origin"] == ds.identity
    assert spdebench.verify(back).good


@pytest.mark.parametrize("key", ["phi41 dirichlet", "kdv"])
def test_an_imported_dataset_exports_to_the_same_columns(made, key, tmp_path):
    first = export_published(made[key], tmp_path)
    native = spdebench.open_dataset(import_published(first, tmp_path))
    second = export_published(native, tmp_path / "again")
    assert second.name == first.name
    pd.testing.assert_frame_equal(frame(first), frame(second), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("variant", ["phi42", "ns"])
def test_plain_arrays_survive_in_two_dimensions(variant, tmp_path):
    coordinates, w, sol = fields(variant)
    flat = read_flat(flat_file(tmp_path / "a-xi-32-3.parquet", variant), LAYOUTS[variant])
    np.testing.assert_array_equal(flat.W, w)
    np.testing.assert_array_equal(flat.sol, sol)
    assert flat.eps == (32 if variant == "phi42" else None)
    for axis, values in coordinates.items():
        np.testing.assert_array_equal(flat.coordinates[axis], values)


@pytest.mark.parametrize("variant", ["phi42", "ns"])
def test_two_dimensions_go_to_native_and_back(variant, tmp_path):
    name = {"phi42": "Phi42-reno_xi-32-3.parquet", "ns": "NS-xi-32-3.parquet"}[variant]
    source = flat_file(tmp_path / name, variant)
    ds = spdebench.open_dataset(import_published(source, tmp_path / "native"))
    _, w, sol = fields(variant)
    assert ds.identity["published"]["variant"] == variant
    assert ds.grid.points == (6, 6) and ds.grid.upper == pytest.approx((1.0, 1.0))
    np.testing.assert_array_equal(ds.u, sol)
    np.testing.assert_array_equal(ds.dw[:, 0], 0)
    np.testing.assert_allclose(ds.dw[:, 1:], w if variant == "ns" else np.diff(w, axis=1), rtol=2e-7)
    assert ("note" in ds.identity["published"]) == (variant == "ns")
    again = export_published(ds, tmp_path / "again")
    pd.testing.assert_frame_equal(frame(source), frame(again), rtol=1e-6, atol=1e-6)


# --- the authors' way of reading ----------------------------------------------------------------------------------
def as_the_authors_read(path: Path, variant: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Count the distinct coordinates (a NaN would count), reshape, cut the padding."""
    df = pd.read_parquet(path)
    points = {axis: len(df[axis].unique()) for axis in "TXY" if axis in df}
    w, sol = np.array(df["W"]), np.array(df["sol"])
    if variant == "phi42":
        shape = (n, points["T"], points["X"], points["Y"])
        return w.reshape(shape), sol.reshape(shape)
    if variant == "ns":
        shape = (n, 6, 6, points["T"])
        return w.reshape(shape)[..., : points["T"] - 1], sol.reshape(shape)
    shape = (n, points["X"], points["T"])
    return w.reshape(shape), sol.reshape(shape)[:, : points["X"] - 1] if variant == "kdv" else sol.reshape(shape)


@pytest.mark.parametrize("key", DATASETS)
def test_the_authors_read_our_export(made, key, tmp_path):
    ds = made[key]
    w, sol = as_the_authors_read(export_published(ds, tmp_path), key.split()[0], len(ds))
    u, path = ds.u.transpose(0, 2, 1), np.cumsum(ds.dw, axis=1, dtype=np.float64).transpose(0, 2, 1)
    assert w.shape == (5, 17, 5) and sol.shape == (5, 16 if key == "kdv" else 17, 5)
    np.testing.assert_array_equal(sol[:, :16], u)
    np.testing.assert_array_equal(w[:, :16], path)
    np.testing.assert_array_equal(w[..., 0], 0)
    ends = np.zeros_like(path[:, 0]) if "dirichlet" in key else path[:, 0]
    np.testing.assert_array_equal(w[:, 16], ends)
    if key != "kdv":
        np.testing.assert_array_equal(sol[:, 16], np.zeros_like(u[:, 0]) if "dirichlet" in key else u[:, 0])


@pytest.mark.parametrize("variant", ["phi42", "ns"])
def test_the_authors_read_our_two_dimensional_files(variant, tmp_path):
    _, w, sol = fields(variant)
    seen_w, seen_sol = as_the_authors_read(flat_file(tmp_path / "a.parquet", variant), variant, 3)
    if variant == "ns":
        seen_w, seen_sol = (np.moveaxis(a, -1, 1) for a in (seen_w, seen_sol))
    np.testing.assert_array_equal(seen_w, w)
    np.testing.assert_array_equal(seen_sol, sol)


# --- names --------------------------------------------------------------------------------------------------------
def test_names_follow_the_paper(made, tmp_path):
    names = {key: export_published(ds, tmp_path / key).name for key, ds in made.items()}
    assert names == {
        "phi41": "Phi41-1_u0_xi-8-5.parquet",
        "phi41 dirichlet": "Phi41-01_xi-8-5.parquet",
        "wave": "wave-xi-8-5.parquet",
        "wave dirichlet": "wave-xi-8-5.parquet",
        "kpz": "KPZ-01_xi_lam05-8-5.parquet",
        "kdv": "KdV-cyl_xi-8-5.parquet",
    }
    assert export_published(made["kdv"], tmp_path, name="mine").name == "mine.parquet"
    with pytest.raises(UserError, match="without folders"):
        export_published(made["kdv"], tmp_path, name="../mine")


@pytest.mark.parametrize(
    ("stem", "tags"),
    [
        ("Phi42+_expl_xi_eps_2_1200", ["phi42", "xi", 2, 1200, "expl"]),
        ("Phi42_reno_xi_u0_eps8_12", ["phi42", "u0_xi", 8, 12, "reno"]),
        ("Phi41-01_u0_xi-128-10000", ["phi41", "u0_xi", 128, 10000, 0.1]),
        ("Phi41sigma1_xi_trc32_1200", ["phi41", "xi", 32, 1200, 1.0]),
        ("KdV_Q_xi_trc64_1200", ["kdv", "xi", 64, 1200, "Q"]),
        ("KPZ-01_xi_lam05-8-5", ["kpz", "xi", 8, 5, 0.1]),
        ("merged_ns_1200", ["nse", None, None, None, None]),
        ("whatever", [None] * 5),
    ],
)
def test_tags_are_read_off_a_name(stem, tags):
    found = guess_tags(stem)
    extra = [found.get(key) for key in ("sigma", "noise", "renormalisation") if key in found] or [None]
    assert [*(found.get(key) for key in ("equation", "task", "truncation", "samples")), *extra] == tags


def test_repeating_is_harmless_and_nothing_is_overwritten(made, tmp_path):
    path = export_published(made["wave"], tmp_path)
    before = path.read_bytes()
    assert export_published(made["wave"], tmp_path) == path and path.read_bytes() == before
    with pytest.raises(UserError, match="other data"):
        export_published(made["wave dirichlet"], tmp_path)
    native = import_published(path, tmp_path)
    assert native != path and import_published(path, tmp_path) == native
    other = export_published(made["wave dirichlet"], tmp_path / "other")
    with pytest.raises(UserError, match="another file"):
        import_published(other, tmp_path)


# --- padding and detection ----------------------------------------------------------------------------------------
def test_padded_coordinates_and_small_row_groups(made, tmp_path):
    ds = made["phi41"]
    table = frame(export_published(ds, tmp_path))
    for axis in "TX":
        values = table[axis].unique()
        table[axis] = np.concatenate([values, np.full(len(table) - len(values), np.nan)])
    path = tmp_path / "odd.parquet"
    table.to_parquet(path, index=False, row_group_size=37)
    back = spdebench.open_dataset(import_published(path, tmp_path))
    np.testing.assert_array_equal(back.u, ds.u)
    np.testing.assert_allclose(back.dw, ds.dw, rtol=1.2e-7, atol=1e-14)


@pytest.mark.parametrize("filler", [np.nan, 0.0, None])
def test_kdv_is_known_by_its_padding_whatever_its_name(made, filler, tmp_path):
    ds = made["kdv"]
    table = frame(export_published(ds, tmp_path))
    table["sol"] = table["sol"].where(table["sol"].notna(), filler)
    back = spdebench.open_dataset(import_published(rewrite(table, tmp_path / "nameless.parquet"), tmp_path))
    assert back.identity["published"]["variant"] == "kdv" and back.grid.periodic
    np.testing.assert_array_equal(back.u, ds.u)


def test_paths_that_blew_up_are_counted(made, tmp_path):
    table = frame(export_published(made["kdv"], tmp_path))
    table.loc[20:60, "sol"] = np.nan
    back = spdebench.open_dataset(import_published(rewrite(table, tmp_path / "KdV-cyl_xi-8-5b.parquet"), tmp_path))
    assert back.identity["published"]["non_finite_samples"] == 1
    assert np.isfinite(back.u[1:]).all()


@pytest.mark.parametrize(("side", "stem"), [(16, "NS"), (64, "NS-xi-64-2"), (8, "NS_xi_trc64_2")])
def test_ns_has_no_space_columns_and_a_square_grid_is_inferred(side, stem, tmp_path):
    path = tmp_path / f"{stem}.parquet"
    rng = np.random.default_rng(1)
    w, sol = rng.standard_normal((2, 2, side, side)), rng.standard_normal((2, 3, side, side))
    write_flat(path, LAYOUTS["ns"], {"T": np.arange(3.0)}, [(w, sol)])
    ds = spdebench.open_dataset(import_published(path, tmp_path))
    assert ds.grid.points == (side, side) and len(ds) == 2
    np.testing.assert_array_equal(ds.u, sol.astype(np.float32))


# --- files that are not what they say -----------------------------------------------------------------------------
def spoiled(kind: str, good: Path, folder: Path) -> Path:
    table, path = frame(good), folder / "bad.parquet"
    match kind:
        case "missing column":
            return rewrite(table.drop(columns="W"), path)
        case "missing coordinate":
            return rewrite(table.drop(columns="T"), path)
        case "wrong length":
            return rewrite(table.iloc[:-3], path)
        case "no rows":
            return rewrite(table.iloc[:0], path)
        case "empty coordinate":
            return rewrite(table.assign(X=np.nan), path)
        case "falling coordinate":
            return rewrite(table.assign(T=-table["T"]), path)
        case "words":
            return rewrite(table.assign(sol="many"), path)
        case "hole in W":
            return rewrite(table.assign(W=table["W"].where(table.index != 100)), path)
        case "cut":
            path.write_bytes(good.read_bytes()[:-100])
        case "flipped":
            data = bytearray(good.read_bytes())
            data[len(data) // 3] ^= 0xFF
            path.write_bytes(data)
        case "not parquet":
            path.write_text("T,X,W,sol\n")
    return path


@pytest.mark.parametrize(
    "kind",
    [
        "missing column", "missing coordinate", "wrong length", "no rows", "empty coordinate", "falling coordinate",
        "words", "hole in W", "cut", "flipped", "not parquet", "not there",
    ],
)  # fmt: skip
def test_bad_files_are_one_line_and_leave_nothing(made, kind, tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    out.mkdir()
    bad = spoiled(kind, export_published(made["phi41"], source), source)
    with pytest.raises(UserError) as caught:
        import_published(bad, out)
    assert "\n" not in str(caught.value) and "bad.parquet" in str(caught.value)
    assert not list(out.iterdir())


def test_what_cannot_be_told_is_asked_for(made, tmp_path):
    still = np.zeros((1, 2, 64, 64))
    write_flat(tmp_path / "NS.parquet", LAYOUTS["ns"], {"T": np.arange(2.0)}, [(still[:, 1:], still)])
    with pytest.raises(UserError, match="do not determine the grid"):
        import_published(tmp_path / "NS.parquet", tmp_path)
    (tmp_path / "NS.parquet").rename(tmp_path / "NS-xi-64-3.parquet")
    with pytest.raises(UserError, match="not 3 square grids"):
        import_published(tmp_path / "NS-xi-64-3.parquet", tmp_path)
    table = frame(flat_file(tmp_path / "two.parquet", "phi42")).drop(columns="eps")
    with pytest.raises(UserError, match="say which with variant"):
        import_published(rewrite(table, tmp_path / "two.parquet"), tmp_path)
    assert import_published(tmp_path / "two.parquet", tmp_path, variant="phi42").exists()
    with pytest.raises(UserError, match="did you mean 'phi42'"):
        import_published(tmp_path / "two.parquet", tmp_path, variant="ph42")
    with pytest.raises(UserError, match="no column T"):
        import_published(made["phi41"].path, tmp_path)


def test_a_failing_export_leaves_nothing(tmp_path):
    coordinates, w, sol = fields("phi42")

    def blocks():
        yield w, sol
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_flat(tmp_path / "a.parquet", LAYOUTS["phi42"], coordinates, blocks(), eps=1)
    with pytest.raises(UserError, match="in layout"):
        write_flat(tmp_path / "a.parquet", LAYOUTS["phi42"], coordinates, [(w[:, 1:], sol)], eps=1)
    with pytest.raises(UserError, match="7 points"):
        write_flat(tmp_path / "a.parquet", LAYOUTS["phi42"], {**coordinates, "T": np.arange(3.0)}, [(w, sol)], eps=1)
    assert not list(tmp_path.iterdir())
