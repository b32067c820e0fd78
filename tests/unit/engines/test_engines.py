"""Engines: order of units, which units run at the same time, killed workers, interrupts; one-line errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import engine_units
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spdebench import engines
from spdebench.engines import Need, check_free_memory, free_memory, local, memory, on_ray
from spdebench.errors import UserError


def test_unknown_engines_and_workers():
    with pytest.raises(UserError, match="unknown engine 'rai'; did you mean 'ray'"):
        engines.run(engine_units.square, [1], engine="rai")
    with pytest.raises(UserError, match="workers must be at least 1, got 0"):
        engines.run(engine_units.square, [1], 0)


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(on_ray.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"needs the package ray.*pip install 'ray>="):
        engines.run(engine_units.square, [1], engine="ray")


def test_smaller_ranks_first_and_of_one_rank_the_longest():
    first, second = (0, 0.5), (0, 2.0)
    needs = {
        "a": Need(seconds=1, rank=first),
        "b": Need(seconds=5, rank=first),
        "c": Need(seconds=9, rank=second),
        "d": Need(seconds=5, rank=first),
    }
    assert list(engines.run(str.upper, list("cabd"), needs=needs.__getitem__)) == ["B", "D", "A", "C"]
    assert list(engines.run(str.upper, list("cab"))) == ["C", "A", "B"]  # nothing known: as they came
    assert list(engines.run(str.upper, [])) == []


def test_units_that_have_become_possible_take_their_place_among_the_others():
    new = [["y"], [], ["z"]]
    needs = {each: Need(rank=(place,)) for place, each in enumerate("aybz")}
    found = engines.run(str.upper, list("ab"), needs=needs.__getitem__, new_units=lambda: new.pop(0) if new else [])
    assert list(found) == list("AYBZ")


def test_an_error_in_this_process_is_the_units_own():
    with pytest.raises(UserError, match="1 is not wanted here"):
        list(engines.run(engine_units.refuses, [1, 2]))


needs = st.builds(
    Need,
    memory=st.integers(0, 100),
    gpus=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    place=st.sampled_from(["a", "b"]),
    kind=st.sampled_from(["", "small", "large"]),
)


@given(st.lists(needs, min_size=1, max_size=12), st.integers(1, 5), st.integers(1, 120), st.randoms())
def test_which_units_run_at_the_same_time(wanted, workers, memory, random):
    """At no moment more than fits, unless one runs alone; and everything gets its turn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "free_memory", lambda: memory - sum(n.memory for n in room.needs))
        room = local.Reservations(workers, memory)
        waiting, done = list(wanted), 0
        while waiting or room.needs:
            for need, _ in room.choose([(need, need) for need in waiting]):
                room.start(need)
                waiting.remove(need)
            assert room.needs and len(room.needs) <= workers
            if len(room.needs) > 1:
                # a unit with unknown needs is started while a unit runs that is larger than the memory
                known = [n.memory for n in room.needs if n.memory]
                assert len(known) <= 1 or sum(known) <= memory
                for place in "ab":
                    there = [n for n in room.needs if n.place == place]
                    assert sum(n.gpus for n in there) <= 1 and len({n.kind for n in there} - {""}) <= 1
            room.end(random.choice(room.needs))
            done += 1
        assert done == len(wanted)


def test_a_unit_of_another_kind_gets_its_turn_when_the_gpu_is_free():
    """After a unit that waits for units of another kind to end, none starts on that GPU; on others they do."""
    small, large, other = (Need(gpus=0.1, seconds=9.0, place="a", kind=kind) for kind in ("small", "large", ""))
    elsewhere = Need(gpus=0.1, place="b", kind="small")
    room = local.Reservations(9, None)
    room.start(small)
    waiting = [(name, need) for name, need in zip("oslse", (other, small, large, small, elsewhere), strict=True)]
    assert [name for name, _ in room.choose(waiting)] == ["o", "s", "e"]
    assert [name for name, _ in local.Reservations(9, None).choose(waiting[2:3])] == ["l"]
    waiting[2] = ("l", replace(large, start_by=time.monotonic() - 1))  # too late for it: nobody waits
    assert [name for name, _ in room.choose(waiting)] == ["o", "s", "s", "e"]


def test_a_unit_overtakes_one_of_another_kind_if_it_does_not_make_it_wait_longer():
    """Two small units of 10 and 4 s run, a large one waits. At 3 s a small one of 7 s may start, and not one of 8 s."""
    now = 0.0
    small = Need(gpus=0.1, seconds=10.0, place="a", kind="small")
    waiting = [
        ("large", Need(gpus=0.1, place="a", kind="large")),
        ("8 s", replace(small, seconds=8.0)),
        ("7 s", replace(small, seconds=7.0)),
    ]
    room = local.Reservations(9, None, lambda: now)
    room.start(small)
    room.start(replace(small, seconds=4.0))
    now = 3.0
    assert [name for name, _ in room.choose(waiting)] == ["7 s"]
    room.end(small)  # the end of the other one, at 4 s, is too early for it
    assert [name for name, _ in room.choose(waiting)] == []
    room.end(replace(small, seconds=4.0))
    assert [name for name, _ in room.choose(waiting)] == ["large", "8 s", "7 s"]  # the caller starts the first


def test_free_memory_is_some_of_the_machines():
    total = next(
        1024 * int(line.split()[1])
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemTotal")
    )
    assert 0 < free_memory() < total


def test_memory_that_is_not_free_is_refused_with_what_to_do(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 2_000_000_000)
    check_free_memory(2_000_000_000, "paths", "solve fewer")
    with pytest.raises(UserError) as told:
        check_free_memory(1_234_500_000_000, "solving 10 samples", "solve fewer")
    assert str(told.value) == "solving 10 samples: 1,234.5 GB of memory are needed, 2.0 GB are free; solve fewer"
    monkeypatch.setattr(memory, "free_memory", lambda: None)  # unknown: nothing is refused
    check_free_memory(1 << 60, "paths", "solve fewer")


def test_where_the_system_does_not_say_what_is_free_all_memory_counts(monkeypatch):
    monkeypatch.setattr(memory, "_kibibytes", lambda *_: None)
    monkeypatch.setattr(memory, "_group_free", lambda: None)
    assert free_memory() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    monkeypatch.delattr(os, "sysconf")  # as on Windows
    assert free_memory() is None


PEAK = "from spdebench.engines import peak_memory; {}; print(peak_memory())"


def test_peak_memory_is_that_of_the_process_and_not_of_the_one_that_started_it():
    """100 MB that were used and freed are counted, 200 MB of the program that this one replaced are not."""
    own, small = PEAK.format("bytearray(100_000_000)"), PEAK.format("0")
    larger = f"import os, sys; x = bytearray(200_000_000); os.execv(sys.executable, [sys.executable, '-c', {small!r}])"
    peaks = [int(subprocess.check_output([sys.executable, "-c", code])) for code in (own, larger)]
    assert 100_000_000 < peaks[0] < 200_000_000 and peaks[1] < 100_000_000


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux can reset the peak")
def test_a_run_does_not_count_the_memory_of_what_its_process_did_before():
    code = "from spdebench.training.provenance import peak_memory_mb, start_memory_watch"
    code += "; bytearray(400_000_000); x = peak_memory_mb('cpu')"
    code += "; start_memory_watch('cpu'); print(x, peak_memory_mb('cpu'))"
    first, second = map(float, subprocess.check_output([sys.executable, "-c", code]).split())
    assert first - second > 100


def test_a_killed_worker_costs_nothing_but_time(tmp_path):
    *first, last = [(str(tmp_path), k) for k in range(6)]
    later = [[last]]  # which becomes possible when one has ended
    found = list(engines.run(engine_units.dies_once, first, 2, new_units=lambda: later.pop() if later else []))
    assert sorted(found) == list(range(6))  # none lost, none doubled
    assert (tmp_path / "3").read_text() == "xx" and (tmp_path / "5").read_text() == "x"


@pytest.mark.slow
def test_a_unit_that_no_worker_survives(monkeypatch):
    """It is tried alone, so that its neighbours are not blamed, and given up; everything else is done first."""
    monkeypatch.setattr(local, "SHARED", 1)
    monkeypatch.setattr(local, "ATTEMPTS", 2)
    found = []
    with pytest.raises(UserError, match=r"its worker process died 2 times.*the other units are finished and kept"):
        for result in engines.run(engine_units.dies_at_two, [1, 2, 3], 2):
            found.append(result)
    assert sorted(found) == [1, 3]


def test_an_interrupt_ends_workers_and_leaves_nothing_half_written(tmp_path):
    script = tmp_path / "driver.py"
    script.write_text(
        "from spdebench import engines\nimport engine_units\n"
        f"units = [({str(tmp_path)!r}, k) for k in range(3)]\n"
        "if __name__ == '__main__':\n    list(engines.run(engine_units.writes_slowly, units, 2))"
    )
    environment = {"PYTHONPATH": str(Path(__file__).parent), "OMP_NUM_THREADS": "1"}
    driver = subprocess.Popen([sys.executable, str(script)], env=environment, stderr=subprocess.PIPE)
    limit = time.monotonic() + 300
    while len(list(tmp_path.glob(".*.tmp"))) < 2:
        assert time.monotonic() < limit and driver.poll() is None
        time.sleep(0.05)
    driver.send_signal(signal.SIGINT)
    _, errors = driver.communicate(timeout=120)
    assert driver.returncode and b"KeyboardInterrupt" in errors
    assert [p.name for p in tmp_path.iterdir()] == ["driver.py"]


def test_the_unit_of_a_stopped_worker_is_given_to_another(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "CHECK_EVERY", 0.4)
    monkeypatch.setattr(local, "SILENT", 3)
    monkeypatch.setattr(local, "ATTEMPTS", 100)  # on a busy machine another worker may be silent for so short a time
    units = [(str(tmp_path), number) for number in range(3)]
    assert sorted(engines.run(engine_units.stops_once, units, 2)) == [0, 1, 2]
