// Which questions are listed. The choices are also in the page's address: #category=temporal&a=1&is=w
const several = index.cells.length > 1;
const SHOW = {
  "": "all questions",
  ...(several && { differ: "the runs differ", noneright: "no run is right", allright: "all runs are right" }),
  shown: "evidence shown, not right",
  missed: "evidence missed",
  ...(index.marks.some((marks) => marks.includes("m")) && { repeats: "the repeats differ" }),
  disputed: "verdicts disagree on one answer",
  unscored: "not scored or failed",
};
const OUTCOMES = { "": "any", r: "right", x: "not right", w: "wrong", a: "abstained", u: "not scored", f: "failed", m: "repeats differ" };
const DEFAULTS = { text: "", conversation: "", category: "", show: "", a: "1", is: "", b: "2", and: "" };
const filters = { ...DEFAULTS };
let listed = index.ids.map((_, number) => number);

function isOutcome(end, wanted) {
  if (wanted === "") return true;
  return wanted === "x" ? end !== "r" && end !== "-" : end === wanted;
}

function isShown(number) {
  const ends = index.marks.map((marks) => marks[number]);
  // A run that only retrieves is neither right nor wrong.
  const judged = index.marks.filter((marks) => /[^u-]/.test(marks)).map((marks) => marks[number]);
  const asked = judged.filter((end) => end !== "-");
  const own = Number(filters.a) - 1;
  switch (filters.show) {
    case "differ": return new Set(asked).size > 1;
    case "noneright": return !asked.includes("r");
    case "allright": return asked.length > 0 && asked.every((end) => end === "r");
    case "shown": return index.shown[own][number] === "a" && isOutcome(ends[own], "x");
    case "missed": return "sn".includes(index.shown[own][number]);
    case "repeats": return ends.includes("m");
    case "disputed": return index.disagree[number] === 1;
    case "unscored": return ends.some((end) => "uf".includes(end));
    default: return true;
  }
}

function chooseListed(answers) {
  const words = filters.text.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = [];
  for (let number = 0; number < total; number += 1) {
    if (filters.conversation && index.cases[index.case[number]] !== filters.conversation) continue;
    if (filters.category && index.categories[index.category[number]] !== filters.category) continue;
    if (!isOutcome(index.marks[Number(filters.a) - 1][number], filters.is)) continue;
    if (several && !isOutcome(index.marks[Number(filters.b) - 1][number], filters.and)) continue;
    if (!isShown(number)) continue;
    if (words.length) {
      const where = `${index.ids[number]}\n${index.text[number]}\n${index.gold[number]}\n${answers ? answers[number] : ""}`.toLowerCase();
      if (!words.every((word) => where.includes(word))) continue;
    }
    chosen.push(number);
  }
  listed = chosen;
}

function makeFilters(onChange) {
  const form = document.getElementById("filters");
  const select = (name, label, choices, extra) => {
    const options = choices.map(([value, text]) => element("option", { value }, text));
    return element("select", { name, "aria-label": label, title: label, ...extra }, options);
  };
  const outcomes = Object.entries(OUTCOMES);
  const cells = index.cells.map((cell, number) => [String(number + 1), `${number + 1}  ${cell}`]);
  const field = (name, noun, values) => select(name, noun, [["", `any ${noun}`], ...values.map((value) => [value, value.replaceAll("_", " ")])]);

  form.append(
    element("input", { name: "text", type: "search", class: "all", placeholder: "Search questions, gold and answers   ( / )", "aria-label": "Search questions, gold and answers" }),
    field("conversation", "conversation", index.cases),
    field("category", "category", index.categories),
    select("show", "Which questions", Object.entries(SHOW), { class: several ? "all" : null }),
  );
  if (several) {
    const pair = (cell, outcome, word) =>
      element("div", { class: "pair all" }, select(cell, `${word} run`, cells), select(outcome, `${word} run’s answer`, outcomes));
    form.append(pair("a", "is", "first"), pair("b", "and", "second"));
  } else {
    form.append(select("is", "answer", outcomes.map(([value, text]) => [value, value ? text : "any answer"])));
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    for (const control of form.elements) if (control.name) filters[control.name] = control.value;
    onChange();
  });
}

function showFilters() {
  for (const control of document.getElementById("filters").elements) {
    if (control.name) control.value = filters[control.name];
  }
}

function filtersInAddress() {
  return Object.entries(filters).filter(([name, value]) => value !== DEFAULTS[name]);
}

/** Takes the filters of an address; what an address does not name is as at the beginning. */
function takeFilters(parameters) {
  for (const [name, value] of Object.entries(DEFAULTS)) filters[name] = parameters.get(name) ?? value;
  for (const name of ["a", "b"]) if (!index.cells[Number(filters[name]) - 1]) filters[name] = DEFAULTS[name];
  if (!(filters.show in SHOW)) filters.show = "";
  for (const name of ["is", "and"]) if (!(filters[name] in OUTCOMES)) filters[name] = "";
}
