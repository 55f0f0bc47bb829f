"""Positions of nodes in metres and (source, destination) of flows; ns2/wireless.tcl has the same."""


def of(case):
    d, lanes = case.spacing, case.lanes
    match case.topology:
        case "chain":
            return [(i * d, 0) for i in range(case.hops + 1)], [(0, case.hops)]
        case "cross":
            row = [(i * d, 2 * d) for i in range(5)]
            return [*row, *((2 * d, i * d) for i in (0, 1, 3, 4))], [(0, 4), (5, 8)]
        case "parallel":
            return [(i * d, y) for y in (0, lanes) for i in range(5)], [(0, 4), (5, 9)]
        case "grid":
            rows = [(5 * r, 5 * r + 4) for r in (0, 2, 4)]
            columns = [(c, 20 + c) for c in (0, 2, 4)]
            return [(c * d, r * d) for r in range(5) for c in range(5)], rows + columns
        case "three-parallel":
            return ([(x, i * lanes) for i in range(3) for x in (0, d)],
                    [(2 * i, 2 * i + 1) for i in range(3)])
        case "hidden" | "exposed" | "exposed-outward":
            flows = {"hidden": [(0, 1), (3, 2)], "exposed": [(0, 1), (2, 3)],
                     "exposed-outward": [(1, 0), (2, 3)]}
            return [(i * d, 0) for i in range(4)], flows[case.topology]
    raise ValueError(f"no geometry for {case.topology}")
