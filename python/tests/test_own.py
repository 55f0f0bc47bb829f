"""User-defined algorithms: their arguments, valid return values, and errors."""

import doctest
import functools
import json
import random
import time

import pytest

import hopline as hl
from hopline import _hopline
from hopline.own import CongestionLaw, QueueDiscipline, named

WIRED = """
duration_s = 10
runs = 2
transport = "tcp-sack"
[[node]]
name = "a"
[[node]]
name = "b"
[[node]]
name = "c"
[[link]]
a = "a"
b = "b"
rate_mbps = 100
delay_ms = 1
[[link]]
a = "b"
b = "c"
rate_mbps = 2
delay_ms = 20
queue = {{ capacity_packets = {capacity}, discipline = "{discipline}" }}
[[flow]]
src = "a"
dst = "c"
"""


def scenario(machines, law="aimd", discipline="drop-tail", capacity=20, settings=()):
    plain = _hopline.Scenario.parse(WIRED.format(capacity=capacity, discipline="drop-tail"), "test.toml", "")
    named = plain.with_machines(list(machines.items()))
    given = [("tcp.congestion_control", law), ("link.1.queue.discipline", discipline), *settings]
    return named.with_settings("test", [(key, json.dumps(value)) for key, value in given])


def run(machines, number=1, **how):
    return json.loads(_hopline.run(scenario(machines, **how), number, [], None).json)


def compared(scenario, laws):
    plan = _hopline.Plan.product(scenario, [("tcp.congestion_control", [json.dumps(law) for law in laws])], None, None)
    made = _hopline.compare(plan, None, "resume", 2, [], None)
    return json.loads(made.json(True))


def fails(machines, **how):
    with pytest.raises(RuntimeError) as raised:
        run(machines, **how)
    return str(raised.value)


class AIMD(CongestionLaw):
    def on_ack(self, ack):
        if ack.cwnd_bytes < ack.ssthresh_bytes:
            return ack.slow_start_bytes
        return ack.cwnd_bytes + ack.mss_bytes * ack.acked_bytes / ack.cwnd_bytes

    def on_loss(self, loss):
        return loss.reduced_bytes / 2

    def on_timeout(self, timeout):
        return timeout.reduced_bytes / 2


class Reno(CongestionLaw):
    """hopline's own algorithm, step by step: RFC 5681 with the byte counting of RFC 3465."""

    def __init__(self):
        super().__init__()
        self.counted = self.before = 0

    def on_ack(self, ack):
        if ack.cwnd_bytes < ack.ssthresh_bytes:
            return ack.slow_start_bytes
        self.counted += ack.acked_bytes
        if self.counted < ack.cwnd_bytes:
            return ack.cwnd_bytes
        self.counted -= ack.cwnd_bytes
        return ack.cwnd_bytes + ack.mss_bytes

    def on_loss(self, loss):
        self.before, self.counted = self.counted, 0
        return loss.reduced_bytes // 2

    on_timeout = on_loss

    def on_undo(self, state):
        self.counted = self.before


class Plain:
    """No base class, and no seed."""

    def on_ack(self, ack):
        return ack.cwnd_bytes + 100

    def on_loss(self, loss):
        return loss.cwnd_bytes * 0.7

    def on_timeout(self, timeout):
        return timeout.cwnd_bytes * 0.5


class Tail(QueueDiscipline):
    def enqueue(self, packet, queue):
        return "accept"

    def dequeue(self, head, queue):
        return "serve"


class RED(QueueDiscipline):
    least, most, weight, probability = 5, 15, 0.02, 0.1

    def __init__(self, *, seed=0):
        super().__init__(seed=seed)
        self.average = 0.0

    def enqueue(self, packet, queue):
        self.average += self.weight * (queue.packets - self.average)
        if packet.is_routing or self.average < self.least:
            return "accept"
        if self.average >= self.most:
            return "drop"
        share = (self.average - self.least) / (self.most - self.least)
        return "mark" if self.random.random() < self.probability * share else "accept"

    def dequeue(self, head, queue):
        return "serve"


def fingerprint(result):
    return result["fingerprint"]


def test_reno_in_python_goes_the_way_of_ours_to_the_bit():
    assert fingerprint(run({"Reno": Reno}, law="own:Reno")) == fingerprint(run({}))


def test_what_lets_everything_in_is_drop_tail_to_the_bit():
    assert fingerprint(run({"Tail": Tail}, discipline="own:Tail")) == fingerprint(run({}))


def test_red_keeps_the_queue_shorter_than_drop_tail():
    def waits(**how):
        return run({"RED": RED}, capacity=100, **how)["flows"][0]["delay_p95_s"]

    assert waits(discipline="own:RED") < 0.7 * waits()


def test_the_same_run_gives_the_same_and_another_run_something_else():
    [one, again, other] = [run({"RED": RED}, discipline="own:RED", capacity=100, number=n) for n in (1, 1, 2)]
    assert fingerprint(one) == fingerprint(again) != fingerprint(other)


def test_laws_are_compared_with_ours():
    laws = {"AIMD": AIMD, "Plain": Plain, "gentle": functools.partial(Shrinks, left=0.9)}
    made = compared(scenario(laws), ["cubic", "own:AIMD", "own:Plain", "own:gentle"])
    assert [len(variant["runs"]) for variant in made["variants"]] == [2] * 4
    assert len({variant["fingerprint"] for variant in made["variants"]}) == 4


class Shrinks(AIMD):
    def __init__(self, *, left, seed=0):
        super().__init__(seed=seed)
        self.left = left

    def on_loss(self, loss):
        return loss.reduced_bytes * self.left


def test_a_law_that_raises_ends_its_runs_with_the_traceback_and_no_others():
    class Raises(AIMD):
        acks = 0

        def on_ack(self, ack):
            self.acks += 1
            if self.acks == 100:
                return self.deeper({})
            return super().on_ack(ack)

        def deeper(self, nothing):
            return nothing["such"]

    made = compared(scenario({"Raises": Raises, "AIMD": AIMD}), ["aimd", "own:Raises", "own:AIMD"])
    ours, theirs, other = (variant["failed"] for variant in made["variants"])
    assert ours == other == []
    assert [failed["run"] for failed in theirs] == [1, 2]
    for failed in theirs:
        first, *traceback = failed["error"].splitlines()
        assert first.startswith("own law `Raises` of flow `f0` at node `a` failed in on_ack at ")
        assert first.endswith(" s: Traceback (most recent call last):")
        assert any('return nothing["such"]' in line for line in traceback)
        assert any("in deeper" in line for line in traceback)
        assert traceback[-1] == "KeyError: 'such'"


def test_a_single_run_raises():
    class Raises(Tail):
        def dequeue(self, head, queue):
            raise ValueError(f"{head.waited_s >= 0} {queue.packets}")

    said = fails({"Raises": Raises}, discipline="own:Raises")
    assert said.startswith("own queue discipline `Raises` at node `b` failed in dequeue at ")
    assert said.endswith("ValueError: True 0")


def test_a_constructor_that_raises_fails_the_run():
    class Raises(AIMD):
        def __init__(self, *, seed):
            raise OSError("no file")

    said = fails({"Raises": Raises}, law="own:Raises")
    assert "it cannot be made: Traceback" in said and said.endswith("OSError: no file")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "on_ack returned None: it returns a window in bytes, a number"),
        ("10", "on_ack returned '10': it returns a window in bytes, a number"),
        (float("nan"), "on_ack at"),
        (-1, "a window of -1 bytes: it takes a number from 0 on"),
    ],
)
def test_an_answer_that_is_no_window_fails_the_run(answer, said):
    class Wrong(AIMD):
        def on_ack(self, ack):
            return answer

    assert said in fails({"Wrong": Wrong}, law="own:Wrong")


@pytest.mark.parametrize("answer", [None, "enter", 3, ("accept", "high"), ("accept", 1, 2), ("accept", float("nan"))])
def test_an_answer_that_is_no_verdict_fails_the_run(answer):
    class Wrong(Tail):
        def enqueue(self, packet, queue):
            return answer

    said = fails({"Wrong": Wrong}, discipline="own:Wrong")
    assert "enqueue returned" in said or "a rank that is not a number" in said


class Dice(AIMD):
    def on_ack(self, ack):
        return ack.cwnd_bytes + random.randrange(2000)


class Shared(AIMD):
    calls = 0

    def on_ack(self, ack):
        Shared.calls += 1
        return ack.cwnd_bytes + Shared.calls % 1000


class Clock(AIMD):
    def on_ack(self, ack):
        return ack.cwnd_bytes + time.perf_counter_ns() % 2000


@pytest.mark.parametrize("law", [Dice, Shared, Clock])
def test_what_is_not_repeatable_is_found_out(law):
    said = fails({"law": law}, law="own:law")
    assert said.startswith("the run came out differently when it was made once more")
    assert "Look into law for random numbers" in said


def test_ranks_decide_who_goes_first():
    class Last(Tail):
        """Serves the newest packet first."""

        def __init__(self):
            self.came = 0

        def enqueue(self, packet, queue):
            self.came -= 1
            return "accept", self.came

    assert fingerprint(run({"Last": Last}, discipline="own:Last")) != fingerprint(run({}))


def test_what_machines_are_told():
    told = {"acks": [], "losses": [], "lost": [], "heads": []}

    class Law(Reno):
        def on_ack(self, ack):
            told["acks"].append(ack)
            return super().on_ack(ack)

        def on_loss(self, loss):
            told["losses"].append(loss)
            return super().on_loss(loss)

        def on_timeout(self, timeout):
            return super().on_loss(timeout)

    class Discipline(Tail):
        def dequeue(self, head, queue):
            told["heads"].append(head)
            return "serve"

        def on_lost(self, packet, reason, queue):
            told["lost"].append((packet.len_bytes, reason, queue.packets))

    run({"Law": Law, "Discipline": Discipline}, law="own:Law", discipline="own:Discipline")
    assert all(0.042 <= ack.rtt_s <= 0.3 for ack in told["acks"][20:] if ack.rtt_s)
    assert all(ack.acked_bytes > 0 and ack.mss_bytes == 1448 and not ack.marked for ack in told["acks"])
    assert {loss.sign for loss in told["losses"]} == {"loss"}
    assert all(0 < loss.reduced_bytes <= loss.flight_bytes for loss in told["losses"])
    assert {reason for _, reason, _ in told["lost"]} == {"full"} and {n for *_, n in told["lost"]} == {20}
    assert all(0 <= head.waited_s < 0.2 and not head.is_routing for head in told["heads"])
    assert repr(told["acks"][0]).startswith("Ack { now_s: ")
    with pytest.raises(AttributeError):
        told["acks"][0].now_s = 1


def test_marks_are_losses_without_a_loss():
    signs = []

    class Law(AIMD):
        def on_loss(self, loss):
            signs.append(loss.sign)
            return super().on_loss(loss)

    made = run({"Law": Law, "RED": RED}, law="own:Law", discipline="own:RED", settings=[("tcp.ecn", "ask")])
    assert "mark" in signs
    assert made["flows"][0]["bytes_received"] > 0


def test_a_class_that_lacks_a_method_is_refused_by_its_name():
    class NoTimeout(CongestionLaw):
        on_ack = AIMD.on_ack
        on_loss = AIMD.on_loss

    class NoBase:
        def enqueue(self, packet, queue):
            return "accept"

    class NotOne:
        pass

    for cls, said in [
        (NoTimeout, "NoTimeout has no method `on_timeout`: a congestion law has on_ack, on_loss, on_timeout"),
        (NoBase, "NoBase has no method `dequeue`: a queue discipline has enqueue, dequeue"),
        (NotOne, "NotOne has none of the methods of a congestion law"),
        (AIMD(), "is not a class"),
        (7, "7 is not a class"),
    ]:
        with pytest.raises(TypeError, match="^.*") as raised:
            scenario({"mine": cls})
        assert said in str(raised.value)


def test_results_of_another_class_of_the_same_name_are_not_mixed(tmp_path):
    def keeps(**classes):
        plan = _hopline.Plan.product(
            scenario(classes), [("tcp.congestion_control", ['"aimd"', '"own:Law"'])], None, None
        )
        return _hopline.compare(plan, tmp_path / "results", "resume", 2, [], None)

    class Law(AIMD):
        pass

    first, Law = Law, Shrinks
    keeps(Law=first)
    keeps(Law=first)
    with pytest.raises(Exception, match="a machine of your own"):
        keeps(Law=functools.partial(Law, left=0.9))


def test_classes_among_values_arenamed():
    classes = {}
    gentle = functools.partial(Shrinks, left=0.9)
    assert named(["cubic", AIMD, gentle, AIMD, 3], classes) == [
        "cubic",
        "own:AIMD",
        "own:Shrinks(left=0.9)",
        "own:AIMD",
        3,
    ]
    assert classes == {"AIMD": AIMD, "Shrinks(left=0.9)": gentle}
    with pytest.raises(ValueError, match="two own machines are called AIMD"):
        named([type("AIMD", (AIMD,), {})], classes)
    compared(scenario(classes), ["own:AIMD", "own:Shrinks(left=0.9)"])


def test_classes_are_compared_with_ours_by_the_package_too():
    plain = hl.Scenario.parse(WIRED.format(capacity=20, discipline="drop-tail"))
    made = hl.compare(plain, vary={"tcp.congestion_control": ["aimd", AIMD, Plain]}, runs=2)
    assert made.variants == [
        "tcp.congestion_control=aimd",
        "tcp.congestion_control=own:AIMD",
        "tcp.congestion_control=own:Plain",
    ]
    own = hl.run(plain, set={"tcp.congestion_control": Reno})
    assert own.fingerprint == hl.run(plain).fingerprint

    class Raises(AIMD):
        def on_ack(self, ack):
            raise LookupError("nothing there")

    with pytest.warns(hl.FailedRunsWarning, match="own law `Raises` of flow `f0` at node `a` failed in on_ack"):
        made = hl.compare(plain, vary={"tcp.congestion_control": ["aimd", Raises]}, runs=2)
    assert [number for _, number, _ in made.failed] == [1, 2]
    with pytest.raises(RuntimeError, match="LookupError: nothing there"):
        hl.run(plain, set={"tcp.congestion_control": Raises})


def test_an_evaluation_warns_of_an_exception_and_judges_the_other_algorithms():
    class Raises(AIMD):
        def on_ack(self, ack):
            raise ValueError("no window")

    with pytest.warns(hl.FailedRunsWarning, match="1 of the runs failed and have no value; own:Raises on slow, run 1"):
        result = hl.evaluate(Raises, sections="slow", quick=True)
    assert result.verdicts["slow"]["own:Raises"] == "no-value"
    assert result.verdicts["slow"]["cubic"] == "meets"
    assert result.failed[0][:3] == ("slow", "own:Raises", 1) and "no window" in str(result)


def test_an_evaluation_has_a_number_of_runs_or_is_quick():
    with pytest.raises(ValueError, match="exclude each other"):
        hl.evaluate(AIMD, sections="slow", quick=True, runs=3)
    with pytest.raises(hl.ScenarioError, match="0 runs"):
        hl.evaluate(AIMD, sections="slow", runs=0)


def test_the_examples_of_the_docstrings_run():
    space = {}
    for cls in (CongestionLaw, QueueDiscipline):
        [example] = doctest.DocTestFinder(recurse=False).find(
            cls, globs={"CongestionLaw": CongestionLaw, "QueueDiscipline": QueueDiscipline}
        )
        runner = doctest.DocTestRunner()
        runner.run(example, clear_globs=False)
        assert (runner.failures, runner.tries) == (0, 1)
        space |= example.globs
    machines = {name: space[name] for name in ("AIMD", "RED")}
    made = run(machines, law="own:AIMD", discipline="own:RED", capacity=100)
    assert made["drops_early"] > 0 and made["drops_queue_full"] == 0


def test_the_digest_is_of_the_program_also_where_there_is_no_text():
    def digest(text):
        space = {"CongestionLaw": CongestionLaw, "__name__": "nowhere"}
        exec(compile(text, "<nowhere>", "exec"), space)  # noqa: S102 - a class without a file
        return scenario({"Law": space["Law"]}, law="own:Law").parameters

    law = "class Law(CongestionLaw):\n on_ack = on_loss = on_timeout = lambda self, told: told.cwnd_bytes * {}\n"
    assert digest(law.format(0.5)) == digest(law.format(0.5)) != digest(law.format(0.6))
