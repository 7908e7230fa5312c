// One question: gold, evidence, and what each cell made of it.
const pane = document.getElementById("question");
const opened = new Set(["timeline"].concat(index.cells.length <= 3 ? index.cells.map((_, cell) => `answer ${cell}`) : []));
const repeatOf = new Map();

/** A part that stays open, or closed, from one question to the next. */
function foldable(name, attributes, summary, content) {
  const made = element("details", { ...attributes, open: opened.has(name) }, element("summary", {}, summary));
  let isFilled = false;
  const fill = () => {
    if (!made.open || isFilled) return;
    isFilled = true;
    made.append(...[content()].flat());
  };
  made.addEventListener("toggle", () => {
    if (made.open) opened.add(name);
    else opened.delete(name);
    fill();
  });
  fill();
  return made;
}

async function showQuestion(number) {
  const block = await unpack(index.block[number]);
  if (number !== current) return;

  const id = index.ids[number];
  const question = block.questions[id];
  pane.replaceChildren(
    stepsBar(number),
    element("h2", { dir: "auto" }, index.text[number]),
    element("p", { class: "facts" }, factsOf(number, question)),
    goldOf(number, question, block),
    timelineOf(question),
    ...question.answers.map((answers, cell) => answers.length && answerOf(cell, answers, question, block)).filter(Boolean),
    block.whole ? "" : element("p", { class: "remark" }, "The texts of this question are left out: the page would be too large. memeval.load_run(key).context(question_id) returns them."),
  );
  pane.scrollTop = 0;
}

function stepsBar(number) {
  const place = listed.indexOf(number);
  const where = place < 0 ? "not in the list" : `${inThousands(place + 1)} of ${inThousands(listed.length)}`;
  const step = (label, key, action) => element("button", { type: "button", click: action }, `${label} `, element("kbd", { "aria-hidden": "true" }, key));
  return element("div", { class: "steps" },
    element("button", { type: "button", class: "back", click: () => go(null) }, "‹ List"),
    step("Previous", "k", () => move(-1)), step("Next", "j", () => move(1)), step("Next failure", "f", () => nextFailure(1)),
    element("span", {}, where));
}

function factsOf(number, question) {
  const facts = [
    element("a", { href: addressOf(number) }, index.ids[number]),
    index.cases[index.case[number]] && `conversation ${index.cases[index.case[number]]}`,
    index.categories[index.category[number]].replaceAll("_", " "),
    ...Object.entries(question.facets || {}).map(([facet, value]) => `${facet} ${value}`),
    question.asked && `asked at ${question.asked}`,
    index.disagree[number] && "verdicts disagree on one answer",
  ];
  return facts.filter(Boolean).map((fact) => element("span", {}, fact));
}

function goldOf(number, question, block) {
  const rows = element("dl", { class: "gold" });
  const gold = index.gold[number] || (question.answerable ? "none given" : "The conversation does not say: a refusal is right.");
  rows.append(element("dt", {}, "Gold"), element("dd", { class: "value", dir: "auto" }, gold));
  if (question.choices) rows.append(element("dt", {}, "Choices"), element("dd", {}, question.choices.join("\n")));

  const turns = question.evidence.map((id, place) => {
    const chunk = turnText(block, index.case[number], id);
    const text = chunk ? chunk.text : "No run retrieved it: its text is not in this page.";
    const others = chunk && chunk.turns.length > 1 ? ` within ${plural(chunk.turns.length, "turn")}` : "";
    return element("div", { class: "turn" },
      element("div", { class: "id" }, `${id}${others} · ${ranksOf(place, question)}`),
      element("div", { class: chunk ? "text" : "soft", dir: "auto" }, text));
  });
  rows.append(element("dt", {}, "Evidence"), element("dd", {}, turns.length ? turns : "The data set lists none."));
  return rows;
}

/** What happened to the memory before and after the question was asked. */
function timelineOf(question) {
  if (!question.timeline) return "";
  const asked = question.timeline.findIndex(([kind]) => kind === "asked");
  const doneBy = (place) => question.answers.flatMap((answers, cell) => {
    const answer = answers[repeatOf.get(cell) || 0] || answers[0];
    const said = answer && answer.done && answer.done[place];
    return said ? [several ? `${index.cells[cell]}: ${said}` : said] : [];
  });
  return foldable("timeline", { class: "timeline" }, "Timeline of the conversation", () =>
    element("ol", {}, question.timeline.map(([kind, text], place) => {
      const done = doneBy(place);
      return element("li", { class: place > asked ? `${kind} later` : kind },
        element("span", { class: "kind" }, kind),
        element("span", {}, element("bdi", {}, text), done.length ? element("span", { class: "soft" }, ` · ${done.join(" · ")}`) : ""));
    })));
}

/** Where a piece of evidence ranked, by cell. */
function ranksOf(place, question) {
  const ranked = [];
  const unranked = [];
  question.answers.forEach((answers, cell) => {
    const answer = answers[repeatOf.get(cell) || 0] || answers[0];
    if (!answer || !answer.ranks) return;
    const rank = answer.ranks[place] ?? null;
    if (rank === null) unranked.push(index.cells[cell]);
    else ranked.push(several ? `${index.cells[cell]} ${rank}` : String(rank));
  });
  if (!several) return ranked.length ? `rank ${ranked[0]}` : unranked.length ? "not ranked" : "no ranking";

  const parts = [ranked.length && `rank in ${ranked.join(", ")}`, unranked.length && `not ranked by ${unranked.join(", ")}`];
  return parts.filter(Boolean).join("; ") || "no ranking";
}

function answerOf(cell, answers, question, block) {
  const holder = element("div", {});
  const chosen = Math.min(repeatOf.get(cell) || 0, answers.length - 1);
  const answer = answers[chosen];
  const refill = (repeat) => {
    repeatOf.set(cell, repeat);
    made.replaceWith(answerOf(cell, answers, question, block));
  };
  const said = answer.answer === null || answer.answer === undefined
    ? element("span", { class: "soft" }, answer.status ? `No answer: ${answer.status.replaceAll("_", " ")}` : "Only the retrieval was measured.")
    : answer.answer === "" ? element("span", { class: "soft" }, "An empty answer") : answer.answer;
  const summary = [
    markOf(answer.end),
    element("span", { class: "cell" }, several ? `${cell + 1}  ${index.cells[cell]}` : ENDS[answer.end][1]),
    element("span", { class: "text", dir: "auto" }, said),
  ];
  const made = foldable(`answer ${cell}`, { class: "answer" }, summary, () => {
    holder.className = "inside";
    holder.append(...answerParts(cell, chosen, answers, question, block, refill).filter(Boolean));
    return holder;
  });
  return made;
}

function answerParts(cell, chosen, answers, question, block, refill) {
  const answer = answers[chosen];
  const repeats = answers.length > 1 && element("div", { class: "repeats", role: "group", "aria-label": "Repeat" },
    answers.map((one, repeat) => element("button", { type: "button", "aria-pressed": String(repeat === chosen), click: () => refill(repeat) }, `repeat ${one.repeat || 0} `, markOf(one.end))));
  const votes = answer.votes && answer.votes.length > 1 ? ` (votes: ${answer.votes.join(", ")})` : "";
  const verdict = answer.judge && element("p", {}, element("span", { class: "soft" }, `${answer.judge}: ${ENDS[answer.end][1]}${votes}`), answer.reason ? ` · ${answer.reason}` : "");
  const status = answer.status && (answer.error || !answer.reason) && element("p", {}, element("span", { class: "soft" }, `${answer.status.replaceAll("_", " ")}: `), answer.error || "no reason given");

  return [
    repeats, verdict, status,
    element("p", { class: "figures" }, figuresOf(answer, question, block).map((figure) => element("span", {}, figure))),
    chunksPart(cell, answer, question, block),
    stepsPart(cell, answer, question, block),
    writerPart(cell, answer, question, block),
    contextPart(cell, answer, block),
    promptPart(cell, answer, block),
    answer.raw && foldable(`raw ${cell}`, {}, "Whole reply", () => wholeText(answer.raw)),
    answer.notes && foldable(`notes ${cell}`, {}, "Notes", () => wholeText(JSON.stringify(answer.notes, null, 1))),
  ];
}

function figuresOf(answer, question, block) {
  const figures = [];
  if ((answer.chunks || answer.steps) && question.evidence.length) {
    // A tool says which turns its result shows, or the result quotes them.
    const shown = answer.steps
      ? answer.steps.flatMap((step) => step.calls.flatMap(([, , , turns]) => turns))
      : answer.chunks.flatMap((position) => block.chunks[position][1]);
    const turns = new Set(shown);
    figures.push(`${question.evidence.filter((id) => turns.has(id)).length} of ${question.evidence.length} evidence shown`);
  }
  if (answer.tokens !== null) figures.push(`context ${plural(answer.tokens, "token")}`);
  if (answer.sent !== null && answer.sent + (answer.received || 0) > 0) figures.push(`sent ${inThousands(answer.sent)}, received ${inThousands(answer.received || 0)}`);
  figures.push(answer.cost === null ? "cost unknown" : `$${answer.cost}`);
  for (const [name, word] of [["answer_ms", "answered in"], ["retrieval_ms", "retrieved in"], ["judge_ms", "judged in"]]) {
    if (typeof answer.times[name] === "number") figures.push(`${word} ${asTime(answer.times[name])}`);
  }
  return figures;
}

function chunksPart(cell, answer, question, block) {
  if (!answer.chunks) return !answer.steps && element("p", { class: "soft" }, "The system does not show what it retrieved.");
  const evidence = new Set(question.evidence);
  return foldable(`chunks ${cell}`, {}, `${plural(answer.chunks.length, "chunk")} retrieved`, () =>
    element("ol", { class: "chunks" }, answer.chunks.map((position, place) => {
      const [text, turns] = block.chunks[position];
      const isEvidence = turns.some((turn) => evidence.has(turn));
      const score = answer.scores[place];
      return element("li", { class: isEvidence ? "chunk evidence" : "chunk" },
        element("span", { class: "rank" }, String(place + 1)),
        element("div", {},
          element("div", { class: "id" }, isEvidence ? element("b", {}, "evidence ") : "", turns.length > 6 ? `${turns[0]} … ${turns[turns.length - 1]}` : turns.join(" "), score === null ? "" : ` · score ${score}`),
          element("div", { class: "text", dir: "auto" }, textAt(block, text) ?? "its text is not in this page")));
    })));
}

function stepsPart(cell, answer, question, block) {
  if (!answer.steps) return false;
  const calls = answer.steps.flatMap((step) => step.calls);
  return foldable(`steps ${cell}`, {}, `${plural(answer.steps.length, "step")}, ${plural(calls.length, "tool call")}`, () =>
    stepsList(`call ${cell}`, answer.steps, new Set(question.evidence), block));
}

/** What a model wrote into the memory of the conversation, session by session. */
function writerPart(cell, answer, question, block) {
  if (answer.writer === undefined) return false;
  const sessions = block.writers[answer.writer];
  const evidence = new Set(question.evidence);
  const callsOf = (steps) => steps.flatMap((step) => step.calls);
  const calls = sessions.flatMap(([, steps]) => callsOf(steps));
  return foldable(`writer ${cell}`, {}, `Writer: ${plural(sessions.length, "session")}, ${plural(calls.length, "tool call")}`, () =>
    sessions.map(([session, steps], place) => {
      const held = callsOf(steps).flatMap(([, , , turns]) => turns).filter((turn) => evidence.has(turn));
      const summary = [
        `session ${session}: ${plural(callsOf(steps).length, "tool call")}`,
        held.length > 0 && element("span", { class: "held" }, `evidence ${[...new Set(held)].join(" ")}`),
      ];
      return foldable(`written ${cell} ${place}`, {}, summary, () => stepsList(`write ${cell} ${place}`, steps, evidence, block));
    }));
}

function stepsList(name, steps, evidence, block) {
  return element("ol", { class: "chunks" }, steps.map((step, place) => {
    const hasEvidence = step.calls.some(([, , , turns]) => turns.some((turn) => evidence.has(turn)));
    return element("li", { class: hasEvidence ? "chunk evidence" : "chunk" },
      element("span", { class: "rank" }, String(place + 1)),
      element("div", {},
        step.faults.length > 0 && element("div", { class: "fault" }, inWords(step.faults.join(", "))),
        step.text !== null && element("div", { class: "text", dir: "auto" }, textAt(block, step.text) ?? "its text is not in this page"),
        ...step.calls.map((call, number) => callPart(`${name} ${place} ${number}`, call, evidence, block))));
  }));
}

/** A tool call: its arguments, what of the evidence it held, and the first lines of its result. */
function callPart(name, [tool, given, result, turns, fault], evidence, block) {
  const held = turns.filter((turn) => evidence.has(turn));
  const text = textAt(block, result) ?? "its text is not in this page";
  const summary = [
    element("b", {}, tool), ` ${argumentsOf(textAt(block, given) ?? "")}`,
    held.length > 0 && element("span", { class: "held" }, `evidence ${held.join(" ")}`),
    fault && element("span", { class: "fault" }, inWords(fault)),
  ];
  return element("div", { class: "call" },
    foldable(name, {}, summary, () => wholeText(text)),
    element("div", { class: "first", dir: "auto" }, text.slice(0, 400)));
}

/** The arguments of a call without the marks of JSON, if they are an object. */
function argumentsOf(text) {
  try {
    const given = JSON.parse(text);
    if (given && typeof given === "object" && !Array.isArray(given)) {
      text = Object.entries(given).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ");
    }
  } catch { /* a model may write anything */ }
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

const inWords = (name) => name.replaceAll("_", " ");

function contextPart(cell, answer, block) {
  const context = textAt(block, answer.context);
  return context !== null && foldable(`context ${cell}`, {}, "Context that the reader saw", () => wholeText(context));
}

function promptPart(cell, answer, block) {
  return answer.prompt && foldable(`prompt ${cell}`, {}, "Prompt that was sent", () =>
    answer.prompt.map(([role, position]) => [element("p", { class: "soft" }, role), wholeText(textAt(block, position) ?? "its text is not in this page")]).flat());
}

function wholeText(text) {
  return element("div", { class: "whole", dir: "auto", tabindex: "0" }, text);
}
