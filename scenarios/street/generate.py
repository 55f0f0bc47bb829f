#!/usr/bin/env python3
"""Writes street.fcd.xml, in the form of SUMO's FCD output: twelve cars, each around a block of its own.

Streets are 150 m apart: four blocks from west to east, three from south to north. Car i drives around block (i mod 4, i div 4)
at 8 + (i mod 5) m/s, counter-clockwise if i is even and clockwise if it is odd. It starts i mod 4 quarters of the way round
and sets out after i seconds: until then SUMO does not have it. One step is 2 s.
"""
BLOCK_M, CARS, STEP_S, END_S = 150.0, 12, 2, 120


def place(car, time_s):
    way = (8 + car % 5) * (time_s - car) + car % 4 * BLOCK_M
    way = way % (4 * BLOCK_M) if car % 2 == 0 else -way % (4 * BLOCK_M)
    side, along = int(way // BLOCK_M), way % BLOCK_M
    x, y = [(along, 0.0), (BLOCK_M, along), (BLOCK_M - along, BLOCK_M), (0.0, BLOCK_M - along)][side]
    return 50 + car % 4 * BLOCK_M + x, 50 + car // 4 * BLOCK_M + y


with open("street.fcd.xml", "w", encoding="utf-8") as file:
    print("<fcd-export>", file=file)
    for time_s in range(0, END_S + 1, STEP_S):
        print(f'    <timestep time="{time_s:.2f}">', file=file)
        for car in range(min(CARS, time_s + 1)):
            x, y = place(car, time_s)
            speed = 8 + car % 5
            print(f'        <vehicle id="car.{car}" x="{x:.2f}" y="{y:.2f}" speed="{speed:.2f}"/>', file=file)
        print("    </timestep>", file=file)
    print("</fcd-export>", file=file)
