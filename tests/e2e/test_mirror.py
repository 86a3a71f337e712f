"""test_mirror.py: what players are told over the wire against brute force, delta by delta.

Two game servers talk to one daemon: the mover owns the entities, the gateway owns the players (but one, which the mover owns). A space of
flush_ms 0 is flushed by command; after each flush every player's delta must be exactly the difference that brute force finds, and its view
exactly the truth.
"""
import math
import struct

import aoiclient as aoi
from bruteforce import World, f32
from harness import Daemon, main, seeded, test
from mirrorrun import INDEXES, SHAPES, Run

FLUSHES = 120


def run(dimensions, shape, index, base=0.0):
    rng = seeded("%dD %s %s" % (dimensions, shape, index))
    with Daemon() as d, aoi.Connection(d.port, name="mover") as mover, aoi.Connection(d.port, name="gateway") as gateway:
        r = Run(rng, mover, gateway, rng.choice((1, 77, (1 << 64) - 1)), dimensions, SHAPES[shape], INDEXES[index], base)
        for number in range(FLUSHES):
            r.step(number)
        r.queries()


@test
def views_equal_brute_force_in_2d_box_on_grid():
    run(2, "box", "grid")


@test
def views_equal_brute_force_in_2d_box_on_crosslist():
    run(2, "box", "crosslist")


@test
def views_equal_brute_force_in_2d_sphere_on_grid():
    run(2, "sphere", "grid")


@test
def views_equal_brute_force_in_2d_sphere_on_crosslist():
    run(2, "sphere", "crosslist")


@test
def views_equal_brute_force_in_2d_cells_on_grid():
    run(2, "cells", "grid")


@test
def views_equal_brute_force_in_2d_cells_on_crosslist():
    run(2, "cells", "crosslist")


@test
def views_equal_brute_force_in_3d_box_on_grid():
    run(3, "box", "grid")


@test
def views_equal_brute_force_in_3d_box_on_crosslist():
    run(3, "box", "crosslist")


@test
def views_equal_brute_force_in_3d_sphere_on_grid():
    run(3, "sphere", "grid")


@test
def views_equal_brute_force_in_3d_sphere_on_crosslist():
    run(3, "sphere", "crosslist")


@test
def views_equal_brute_force_in_3d_cells_on_grid():
    run(3, "cells", "grid")


@test
def views_equal_brute_force_in_3d_cells_on_crosslist():
    run(3, "cells", "crosslist")


@test
def views_equal_brute_force_eight_million_away_from_the_origin():
    for index in INDEXES:
        for shape in SHAPES:
            run(2, shape, index, base=8000000.0)


@test
def brute_force_itself_rounds_as_a_32_bit_float_does():
    """A check of the checker, on sums whose rounding is known."""
    assert f32(0.1) != 0.1 and f32(0.1) == struct.unpack("<f", struct.pack("<f", 0.1))[0]
    assert f32(8000299.9) == 8000300.0 and f32(16777217.0) == 16777216.0 and f32(4e38) == math.inf
    world = World()
    world.add(1, 1, 0.0, 0.0, radius=0.1)
    world.add(1, 2, 0.1, 0.0)
    world.subscribe(1, 9, 1)
    assert set(world.flush()[9].enters) == {2}


if __name__ == "__main__":
    main()
