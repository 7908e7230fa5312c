// The review. What is typed is saved when its field is left, a decision at once; the server refuses
// what is about an older version of a question.
const byId = (id) => document.getElementById(id);
const STATES = { open: ["·", "to review"], changed: ["!", "changed since you decided"], accepted: ["✓", "accepted"], rejected: ["×", "rejected"] };
let questions = [];
let listed = [];
let current = null;
let turnsOfCase = null;
let seconds = 0;
let since = performance.now();
let wasHidden = document.hidden;
let queue = Promise.resolve();
let isBusy = false;
const filters = { case: "", kind: "", state: "" };

/** What the server replies, as [status, content]; status 0 where it is gone. */
async function ask(what, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  try {
    const reply = await fetch(what, options);
    return [reply.status, await reply.json()];
  } catch {
    return [0, { error: "Nothing is saved: memeval does not answer. Is it still running?" }];
  }
}

function tell(text) {
  byId("notice").hidden = !text;
  byId("notice").replaceChildren(textNodes(text || ""));
}

// Time counts while the page can be seen.
function lookedAt() {
  const now = performance.now();
  if (!wasHidden) seconds += (now - since) / 1000;
  since = now;
  wasHidden = document.hidden;
  return seconds;
}

function startClock() {
  lookedAt();
  seconds = 0;
}

// The list.
function isListed(question) {
  return (!filters.case || question.case_id === filters.case) && (!filters.kind || question.kind === filters.kind) && (!filters.state || question.state === filters.state);
}

function makeFilters() {
  const choices = {
    case: ["all cases", questions.map((question) => question.case_id)],
    kind: ["all kinds", questions.map((question) => question.kind)],
    state: ["all states", Object.keys(STATES)],
  };
  byId("filters").replaceChildren(...Object.entries(choices).map(([name, [all, values]]) => {
    const options = [...new Set(values)].map((value) => element("option", { value }, name === "state" ? STATES[value][1] : value));
    const select = element("select", { name, class: name === "case" ? "all" : null, "aria-label": name, change: () => {
      filters[name] = select.value;
      leaveFor(() => {
        showList();
        if (!listed.includes(current)) show(listed[0] ?? null);
      });
    } }, element("option", { value: "" }, all), options);
    return select;
  }));
}

function rowOf(question) {
  const [sign, word] = STATES[question.state];
  return element("li", {}, element("a", { href: "#", "data-name": question.name, "aria-current": question === current ? "true" : null },
    element("span", { class: "words" }, element("span", { class: "id" }, `${question.name}, ${question.kind}`), element("span", { class: "text", dir: "auto" }, question.question)),
    element("span", { class: `state ${question.state}`, role: "img", "aria-label": word, title: word }, sign)));
}

function showList() {
  listed = questions.filter(isListed);
  byId("list").replaceChildren(...listed.map(rowOf));
  byId("tally").textContent = listed.length < questions.length ? `${inThousands(listed.length)} of ${plural(questions.length, "question")}` : plural(questions.length, "question");
  showProgress();
}

function rowElement(question) {
  return byId("list").querySelector(`[data-name="${CSS.escape(question.name)}"]`);
}

function showProgress() {
  const count = (state) => questions.filter((question) => question.state === state).length;
  const left = count("open") + count("changed");
  const times = questions.filter((question) => question.seconds !== null && question.state !== "changed").map((question) => question.seconds).sort((one, two) => one - two);
  const parts = [`${inThousands(questions.length - left)} of ${inThousands(questions.length)} decided`, `${inThousands(count("accepted"))} accepted`, `${inThousands(count("rejected"))} rejected`];
  if (times.length) {
    const median = (times[(times.length - 1) >> 1] + times[times.length >> 1]) / 2;
    const minutes = (median * left) / 60;
    parts.push(`${median.toFixed(0)} s a question`);
    parts.push(`${inThousands(left)} left${left ? `, about ${minutes < 1 ? "a minute" : plural(Math.round(minutes), "minute")}` : ""}`);
  } else parts.push(`${inThousands(left)} left`);
  byId("progress").textContent = parts.join(" · ");
}

// One question.
function answerField(text, place) {
  const name = place ? `Variant ${place}` : "Answer";
  return element("textarea", { dir: "auto", rows: 1, "aria-label": name, placeholder: name, value: null }, text);
}

function showFields() {
  const question = current;
  byId("fields").hidden = question === null;
  byId("nothing").hidden = question !== null;
  byId("rejecting").hidden = true;
  if (question === null) return byId("conversation").replaceChildren();

  byId("facts").replaceChildren(...[question.name, question.kind, STATES[question.state][1] + (question.reason ? `: ${question.reason}` : "")].map((fact) => element("span", { dir: "auto" }, fact)));
  byId("text").value = question.question;
  // One more than there are: a variant is added by typing it.
  const texts = [...question.answers, ""];
  const fields = texts.map(answerField);
  fields.forEach((field, place) => { field.value = texts[place]; });
  byId("answers").replaceChildren(...fields);
  byId("refusal").hidden = question.answers.length > 0;
  byId("given").replaceChildren(...Object.entries(question.given).flatMap(([name, values]) => [element("dt", {}, name), element("dd", { dir: "auto" }, values.join("\n"))]));
}

function showEvidence() {
  const evidence = new Set(current ? current.evidence : []);
  for (const box of byId("conversation").querySelectorAll("input")) box.checked = evidence.has(Number(box.value));
  byId("evidence").textContent = `Evidence: ${plural(evidence.size, "turn")}`;
  byId("scroll").disabled = evidence.size === 0;
}

function scrollToEvidence() {
  const box = byId("conversation").querySelector("input:checked");
  const turn = box && box.closest("label");
  byId("conversation").scrollTop = turn ? turn.offsetTop - byId("conversation").clientHeight / 3 : 0;
  makeTabStop(box || byId("conversation").querySelector("input"));
}

/** Tab reaches one turn; the arrows move on from there. */
function makeTabStop(box) {
  for (const other of byId("conversation").querySelectorAll("input[tabindex='0']")) other.tabIndex = -1;
  if (box) box.tabIndex = 0;
}

async function showConversation() {
  const wanted = current;
  if (wanted && turnsOfCase !== wanted.case_id) {
    const [status, sessions] = await ask(`case/${wanted.case}`);
    if (wanted !== current) return;
    if (status !== 200) return tell(sessions.error);
    turnsOfCase = wanted.case_id;
    let place = 0;
    byId("conversation").replaceChildren(...sessions.flatMap((session, number) => [
      element("h2", {}, `Session ${number + 1}${session.time ? `, ${session.time}` : ""}`),
      ...session.turns.map((turn) => element("label", {},
        element("input", { type: "checkbox", tabindex: "-1", value: place++ }),
        element("span", {}, element("span", { class: "id" }, turn.speaker, turn.time ? `, ${turn.time}` : ""), element("span", { class: "text", dir: "auto" }, turn.text)))),
    ]));
  }
  showEvidence();
  scrollToEvidence();
}

function show(question) {
  const before = current;
  current = question;
  for (const row of byId("list").querySelectorAll("[aria-current]")) row.removeAttribute("aria-current");
  const row = question && rowElement(question);
  if (row) {
    row.setAttribute("aria-current", "true");
    row.scrollIntoView({ block: "nearest" });
  }
  if (before !== question) {
    startClock();
    tell("");
    byId("refused").hidden = true;
    if (before !== null && innerWidth <= 760) byId("question").scrollIntoView();
  }
  showFields();
  return showConversation();
}

// Saving.
/** A text as it comes back from a field, which has line ends of its own. */
const typed = (text) => text.replace(/\r\n?/g, "\n").trim();

/** What was typed for a question, and is not saved. */
function edits(question) {
  const change = {};
  if (question === null || current === null || current.name !== question.name) return change;
  const answers = [...byId("answers").children].map((field) => typed(field.value)).filter(Boolean);
  if (typed(byId("text").value) !== typed(current.question)) change.question = byId("text").value;
  if (JSON.stringify(answers) !== JSON.stringify(current.answers.map(typed))) change.answers = answers;
  return change;
}

/** Takes the server's question into the list; the fields are shown again unless they are typed in. */
function take(question) {
  const place = questions.findIndex((other) => other.name === question.name);
  const isCurrent = current !== null && current.name === question.name;
  if (place < 0) questions.push(question);
  else questions[place] = question;
  if (isCurrent) current = question;
  const row = rowElement(question);
  listed = listed.map((other) => (other.name === question.name ? question : other));
  if (row) row.parentElement.replaceWith(rowOf(question));
  showProgress();
}

/** Sends a change of the current question, after those that were sent before. True if it is saved. */
function save(makeChange) {
  const question = current;
  if (question === null) return Promise.resolve(true);

  const sent = queue.then(async () => {
    const change = makeChange(question);
    if (Object.keys(change).length === 0) return true;

    // An earlier save may have given it another version; what another tab did must not count.
    const known = current.name === question.name ? current : questions.find((other) => other.name === question.name);
    const [status, reply] = await ask("save", { name: question.name, version: known.version, change });
    if (status === 200) {
      take(reply);
      tell("");
      if (current === reply) {
        const focused = document.activeElement;
        if (!focused.matches("#fields textarea")) showFields();
        else byId("refusal").hidden = reply.answers.length > 0;
        showEvidence();
      }
      return true;
    }

    tell(reply.error);
    if (status === 409) {
      take(reply.question);
      showFields();
      showRefused(change);
      // The conversation may be another one, too.
      turnsOfCase = null;
      await showConversation();
    } else if (change.evidence) showEvidence();
    // The question may be gone from the file.
    if (status === 422) {
      await load();
      tell(reply.error);
    }
    return false;
  });
  queue = sent;
  return sent;
}

/** What was typed and refused, to be put back by hand. */
function showRefused(change) {
  const parts = [];
  if (change.question !== undefined) parts.push(element("p", { dir: "auto" }, `Your question: ${change.question}`));
  if (change.answers !== undefined) parts.push(element("p", { dir: "auto" }, `Your answers: ${change.answers.join(" | ") || "none"}`));
  byId("refused").hidden = parts.length === 0;
  if (!parts.length) return;

  byId("refused").replaceChildren(...parts, element("button", { type: "button", click: () => {
    byId("refused").hidden = true;
    save(() => {
      const { question, answers } = change;
      return Object.fromEntries(Object.entries({ question, answers }).filter(([, value]) => value !== undefined));
    }).then(showFields);
  } }, "Use yours"));
}

const saveEdits = () => save(edits);

/** Saves what was typed, and then does what leaves the question; stays if it can't be saved. */
async function leaveFor(action) {
  if (document.activeElement.matches("#fields textarea")) document.activeElement.blur();
  if (await saveEdits()) await action();
}

async function decide(decision, reason) {
  if (current === null) return;
  const name = current.name;
  const saved = await save((question) => ({ ...edits(question), decision, reason: reason || "", seconds: Math.min(lookedAt(), 86400) }));
  byId("rejecting").hidden = saved || decision !== "rejected";
  if (!saved) return;

  // The next one that is left, in the order of the list, from here and round.
  startClock();
  const place = listed.findIndex((question) => question.name === name);
  const others = [...listed.slice(place + 1), ...listed.slice(0, place)];
  const next = others.find((question) => question.state === "open" || question.state === "changed");
  if (next) return show(next);
  await show(current);
  tell(questions.some((question) => question.state === "open" || question.state === "changed") ? "Everything in this list is decided." : "All questions are decided.");
}

function move(by) {
  return leaveFor(() => {
    const place = listed.findIndex((question) => current && question.name === current.name);
    const next = listed[place + by];
    if (next) return show(next);
  });
}

async function undo() {
  await saveEdits();
  const [status, reply] = await ask("undo", {});
  if (status === 409) take(reply.question);
  if (status !== 200) return tell(reply.error);
  if (reply.question === null) return tell("There is nothing to undo.");
  take(reply.question);
  const question = questions.find((other) => other.name === reply.question.name);
  if (!listed.some((other) => other.name === question.name)) showList();
  await show(question);
  tell(`Taken back: ${question.name}`);
}

function startRejecting() {
  if (current === null) return;
  byId("rejecting").hidden = false;
  byId("reason").value = current.reason;
  byId("reason").focus();
}

function stopRejecting() {
  byId("rejecting").hidden = true;
  byId("question").focus({ preventScroll: true });
}

async function load() {
  const [status, reply] = await ask("questions");
  if (status !== 200) return tell(reply.error);
  questions = reply;
  makeFilters();
  for (const select of byId("filters").children) select.value = filters[select.name];
  showList();
  const known = current && questions.find((question) => question.name === current.name);
  if (known && known.version === current.version) current = known;
  else turnsOfCase = null;
  const open = listed.find((question) => question.state === "open" || question.state === "changed");
  if (!known) return show(open ?? listed[0] ?? null);
  if (Object.keys(edits(known)).length === 0) return show(known);
}

const ACTIONS = {
  accept: () => decide("accepted"),
  reject: startRejecting,
  edit: () => byId("text").focus(),
  undo,
  previous: () => move(-1),
  next: () => move(1),
};
const KEYS = { a: "accept", r: "reject", e: "edit", u: "undo", j: "next", k: "previous" };

/** One action at a time: a key that is pressed twice must not decide on a question unseen. */
async function run(action) {
  if (isBusy) return;
  isBusy = true;
  try {
    await action();
  } finally {
    isBusy = false;
  }
}

for (const [id, action] of Object.entries(ACTIONS)) byId(id).addEventListener("click", () => run(action));
byId("keep").addEventListener("click", stopRejecting);
byId("scroll").addEventListener("click", () => {
  scrollToEvidence();
  const box = byId("conversation").querySelector("input:checked");
  if (box) box.focus({ preventScroll: true });
});
byId("fields").addEventListener("change", saveEdits);
byId("fields").addEventListener("submit", (event) => event.preventDefault());
byId("answers").addEventListener("input", () => {
  const fields = byId("answers").children;
  if (fields[fields.length - 1].value.trim()) byId("answers").append(answerField("", fields.length));
});
byId("rejecting").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!byId("reason").value.trim()) return;
  run(async () => {
    await decide("rejected", byId("reason").value);
    if (byId("rejecting").hidden) byId("question").focus({ preventScroll: true });
  });
});
byId("list").addEventListener("click", (event) => {
  const row = event.target.closest("a");
  if (!row) return;
  event.preventDefault();
  const name = row.dataset.name;
  run(() => leaveFor(() => show(questions.find((question) => question.name === name))));
});
byId("conversation").addEventListener("change", () => {
  const ticked = byId("conversation").querySelectorAll("input:checked");
  const evidence = [...ticked].map((box) => Number(box.value));
  save((question) => ({ ...edits(question), evidence }));
});
byId("conversation").addEventListener("focusin", (event) => makeTabStop(event.target));
byId("conversation").addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  const boxes = [...byId("conversation").querySelectorAll("input")];
  const next = boxes[boxes.indexOf(event.target) + by];
  if (next) next.focus();
});
document.addEventListener("keydown", (event) => {
  if (event.altKey) return;
  const isTyping = event.target.matches("textarea, select, input:not([type=checkbox])");
  const isDone = event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches("textarea");
  if (isTyping && (event.key === "Escape" || isDone)) return stopRejecting();
  if (isTyping || event.ctrlKey || event.metaKey || !KEYS[event.key]) return;
  event.preventDefault();
  run(ACTIONS[KEYS[event.key]]);
});
document.addEventListener("visibilitychange", () => {
  lookedAt();
  if (document.hidden) saveEdits();
  else load();
});
addEventListener("beforeunload", (event) => {
  if (Object.keys(edits(current)).length) event.preventDefault();
});

load();
