"""Static random networks, the same for both simulators.

    python3 networks.py 400

Nodes are uniform in a square with ten neighbours each on average within 250 m (edges not
counted); one flow per ten nodes between two nodes that a path connects, starting between 1 and 5 s.
The files have the keys of [[node]] and [[flow]] of a scenario as header.
"""

import math
import random
import sys
from collections import deque
from pathlib import Path

import measure

RANGE_M = 250.0
NEIGHBOURS = 10
FOLDER = Path(__file__).resolve().parent / "networks"
ROOT = Path(__file__).resolve().parents[2]
DOOR = ROOT / "papers" / "door" / "scenarios" / "uncongested.toml"


def stored(count):
    """The files of a network, made if they are not there: {"nodes": path, "flows": path}."""
    files = {what: FOLDER / f"random-{count}-{what}.csv" for what in ("nodes", "flows")}
    if not all(path.exists() for path in files.values()):
        FOLDER.mkdir(exist_ok=True)
        for what, text in generate(count).items():
            files[what].write_text(text, encoding="ascii")
    return files


def walkers(program, run):
    """The network of the TCP-DOOR paper as `program` moves it in a run, for ns-2."""
    if not program.exists():
        raise RuntimeError(f"{program.relative_to(ROOT)}, which makes the movements, is not built")
    folder = ROOT / "target" / "versus-ns2"
    folder.mkdir(parents=True, exist_ok=True)
    movement, flows = folder / f"door-{run}.ns_movements", folder / "door-flows.csv"
    measure.run([program, "movements", DOOR, "--run", run, "-o", movement, "--force"])
    flows.write_text("src,dst\nn0,n1\n", encoding="ascii")
    return {"movement": movement, "flows": flows}


def generate(count):
    draw = random.Random(count)
    side = math.sqrt(count * math.pi * RANGE_M**2 / NEIGHBOURS)
    # one decimal and 1 m from the edge: exact in decimal, and inside the area of either program
    places = [(round(1 + draw.random() * (side - 2), 1), round(1 + draw.random() * (side - 2), 1))
              for _ in range(count)]
    component = components(places)
    flows = []
    for _ in range(count // 10):
        while True:
            src, dst = draw.randrange(count), draw.randrange(count)
            if src != dst and component[src] == component[dst]:
                break
        flows.append((src, dst, round(1 + 4 * draw.random(), 3)))
    return {
        "nodes": "x_m,y_m\n" + "".join(f"{x},{y}\n" for x, y in places),
        "flows": "src,dst,start_s\n" + "".join(f"n{s},n{d},{start}\n" for s, d, start in flows),
    }


def components(places):
    """For each node the number of one node of its component."""
    label = [-1] * len(places)
    for start in range(len(places)):
        if label[start] >= 0:
            continue
        label[start] = start
        todo = deque([start])
        while todo:
            here = todo.popleft()
            for other, place in enumerate(places):
                if label[other] < 0 and math.dist(places[here], place) <= RANGE_M:
                    label[other] = start
                    todo.append(other)
    return label


if __name__ == "__main__":
    for word in sys.argv[1:]:
        for file in stored(int(word)).values():
            print(file)
