"""The prompt templates of a cell, and their contribution to its keys."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from msgspec import Struct, field

from memeval.config.identity import Digests
from memeval.config.plugins import plugin
from memeval.config.schema import ANSWER, JUDGE, PREPARE, TOOLS, PromptConfig, RunConfig
from memeval.judges.contract import Judge
from memeval.llm.prompts import PromptTemplate, from_file, load_builtin, load_from_package
from memeval.pipeline.open.cell_checks import has_language_model
from memeval.pipeline.open.code import class_digests
from memeval.pipeline.open.system_source import IMPORTED
from memeval.records import AnswerForm

AUTO, SHORT, CHAIN_OF_NOTES = "auto", "short", "con"


class Templates(Struct, frozen=True):
    """The prompt templates of a cell's answers."""

    answer: PromptTemplate
    by_form: Mapping[AnswerForm, PromptTemplate] = {}
    """Under `prompt=auto`, the template for each kind of answer; empty if one is for all."""
    choice: PromptTemplate = field(default_factory=partial(load_builtin, "choose"))
    """The template of questions with choices."""
    note: PromptTemplate | None = None
    """The template of the notes on each chunk, under `prompt=con`."""
    tools: PromptTemplate | None = None
    """The template that describes the tools, under `reader=tools`."""
    writer: PromptTemplate | None = None
    """The template for reading a session, under `writer=tools`."""


def templates_of(config: RunConfig, own_style: str | None, chooses: bool) -> Templates:
    """The templates of a cell. `own_style` is the style of a system that has its own."""
    answer, choice = answer_template(config, own_style, chooses), load_builtin("choose")
    if config.prompt.file and _lists_choices(config.prompt.file):
        choice = from_file(config.prompt.file, ("question", "context", "choices"))

    by_form: dict[AnswerForm, PromptTemplate] = {}
    if config.prompt.name == AUTO and not config.prompt.file and own_style is None:
        by_form = {form: load_builtin(f"answer_{form.value}") for form in AnswerForm}

    note = tools = writer = None
    # A system with its own style answers without the cell's prompt, and without its notes.
    if config.prompt.name == CHAIN_OF_NOTES and own_style is None:
        note = load_builtin("con_note")
    if config.reader.name == TOOLS:
        tools = load_builtin("tools")
    if config.writer.name == TOOLS:
        writer = load_builtin("write_tools")

    return Templates(
        answer=answer, by_form=by_form, choice=choice, note=note, tools=tools, writer=writer
    )


def answer_digests(templates: Templates, *, chooses: bool) -> Digests:
    """Contribution of the answers' prompt templates to the keys."""
    digests = [templates.answer.sha256]
    digests += [templates.by_form[form].sha256 for form in sorted(templates.by_form)]
    if chooses:
        digests.append(templates.choice.sha256)
    if templates.note is not None:
        digests.append(templates.note.sha256)
    if templates.tools is not None:
        digests.append(templates.tools.sha256)

    return {ANSWER: {"prompt": " ".join(digests)}}


def writer_digests(templates: Templates) -> Digests:
    """Contribution of the writer's prompt template to the keys."""
    if templates.writer is None:
        return {}

    return {PREPARE: {"prompt of the writer": templates.writer.sha256}}


def judge_digests(judge_class: type[Judge], template: PromptTemplate | None) -> Digests:
    """Contribution of a judge to the keys: its prompt template, and its class if it is custom."""
    prompt = {} if template is None else {"prompt": template.sha256}
    return {JUDGE: prompt | dict(class_digests(JUDGE, "judge", judge_class).get(JUDGE, {}))}


def answer_template(
    config: RunConfig, own_style: str | None, chooses: bool = False
) -> PromptTemplate:
    """The prompt of the answers: the cell's, unless the system answers in its own style."""
    if own_style is not None:
        return load_builtin(f"answer_{own_style}")
    # A file with a placeholder for choices is only for such questions: others use the built-in.
    if config.prompt.file and not (chooses and _lists_choices(config.prompt.file)):
        return from_file(config.prompt.file, ("question", "context"))

    name = SHORT if config.prompt.name == AUTO else config.prompt.name
    provided = plugin("prompt", name)
    if provided is not None and provided.path is not None:
        return load_from_package(name, provided.path, provided.package)

    return load_builtin(f"answer_{name}")


def resolve_prompt(config: RunConfig) -> PromptConfig:
    """The prompt's config, with `auto` resolved if no template is read."""
    # If nothing reads a template, `auto` and `short` are the same run, and have the same key.
    uses_template = has_language_model(config) and config.system["name"] != IMPORTED
    if config.prompt.name != AUTO or uses_template:
        return config.prompt

    return replace(config.prompt, name=SHORT)


def _lists_choices(file: str) -> bool:
    return "{choices}" in from_file(file, ()).user
