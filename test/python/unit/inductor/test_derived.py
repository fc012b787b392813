"""Test code generators of derived classes: they take the place of torch's, whose classes stay as they are."""

from types import SimpleNamespace

from bridge.inductor import derived


class Generator:
    def __init__(self):
        self.kernels = ["first"]

    def generate(self):
        return "plain"


class Mixin:
    def generate(self):
        return "mixed " + super().generate()  # type: ignore[misc] # what it is mixed into has it


def _scheduler(**backends):
    return SimpleNamespace(backends=backends, get_backend=backends.__getitem__)


def test_derived_code_generator_takes_the_place_in_its_scheduler_only():
    original = Generator()
    scheduler, other = _scheduler(cpu=original), _scheduler(cpu=original)
    scheduler.get_backend = lambda device: scheduler.backends[device]
    found = derived.derive_code_generator(scheduler, "cpu", Mixin)
    assert scheduler.backends["cpu"] is found
    assert other.backends["cpu"] is original
    assert (found.generate(), original.generate()) == ("mixed plain", "plain")
    assert found.kernels is original.kernels


def test_delegate_is_replaced_within_its_combined_code_generator():
    combined = SimpleNamespace(_triton_scheduling=Generator())
    scheduler = _scheduler(cuda=combined)
    found = derived.derive_code_generator(scheduler, "cuda", Mixin)
    assert scheduler.backends["cuda"] is combined
    assert combined._triton_scheduling is found
    assert derived.code_generator(scheduler, "cuda") is found


def test_code_generator_that_has_the_mixin_stays():
    combined = SimpleNamespace(_triton_scheduling=Generator())
    scheduler = _scheduler(cuda=combined)
    first = derived.derive_code_generator(scheduler, "cuda", Mixin)
    assert derived.derive_code_generator(scheduler, "cuda", Mixin) is first


def test_derived_class_has_the_name_of_its_base_and_is_made_once():
    kind = derived.derived_class(Generator, Mixin)
    assert kind.__name__ == "Generator"
    assert kind.__mro__[1:3] == (Mixin, Generator)
    assert derived.derived_class(Generator, Mixin) is kind
