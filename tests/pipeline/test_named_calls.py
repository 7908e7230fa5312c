"""How messages name the call of a system that is under way."""

from memeval.pipeline.isolate.call import SystemCall


def test_system_of_a_package_whose_name_begins_alike_is_known_by_its_module() -> None:
    class Mine:
        __module__ = "memeval_mine.memory"

    assert SystemCall("c1", Mine, "answer").describe() == "case c1: memory.answer"
    Mine.__module__ = "memeval.systems.light.system"
    assert SystemCall("c1", Mine, "answer").describe() == "case c1: Mine.answer"
