// Views, addresses and keys. An address may be kept and sent: report.html#q=conv-26/q12
let current = null;
let atPlace = 0;

function addressOf(number) {
  return `#q=${encodeURIComponent(index.ids[number]).replaceAll("%2F", "/")}`;
}

function showView(name) {
  for (const view of document.querySelectorAll(".view")) view.hidden = view.id !== name;
  for (const link of document.querySelectorAll("[data-view]")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Writes the address, where the page has one of its own: within another page it may not. */
function remember(address) {
  try {
    history.replaceState(null, "", address);
  } catch {
    // The page works without.
  }
}

/** Shows a question; without a number only the list. */
function go(number) {
  current = number;
  document.querySelector(".browser").classList.toggle("one", number !== null);
  showView("questions");
  showCurrentRow();
  const chosen = filtersInAddress();
  const parameters = chosen.length ? `&${new URLSearchParams(chosen)}` : "";
  remember(number === null ? `#questions${parameters}` : `${addressOf(number)}${parameters}`);
  if (number === null) {
    pane.replaceChildren(element("p", { class: "nothing" }, listed.length ? "Choose a question." : "No question fits."));
    return;
  }

  atPlace = Math.max(0, listed.indexOf(number));
  showQuestion(number);
  if (innerWidth <= 760) scrollTo(0, 0);
}

function move(by) {
  const place = listed.indexOf(current);
  const next = place < 0 ? (current === null ? 0 : atPlace) : place + by;
  if (listed[next] !== undefined) go(listed[next]);
}

/** The next question in the list that the first chosen cell did not answer right. */
function nextFailure(by) {
  const marks = index.marks[Number(filters.a) - 1];
  const start = listed.indexOf(current);
  for (let place = start < 0 ? 0 : start + by; place >= 0 && place < listed.length; place += by) {
    if (isOutcome(marks[listed[place]], "x")) return go(listed[place]);
  }
}

async function changeFilters() {
  chooseListed(null);
  showList();
  go(listed.includes(current) || innerWidth <= 760 ? (listed.includes(current) && innerWidth > 760 ? current : null) : listed[0] ?? null);
  const text = filters.text;
  if (!text) return;

  const answers = await answersForSearch();
  if (text !== filters.text) return;
  chooseListed(answers);
  showList();
  if (current === null && innerWidth > 760 && listed.length) go(listed[0]);
  else showCurrentRow();
}

function clearFilters() {
  Object.assign(filters, DEFAULTS);
  showFilters();
  changeFilters();
}

/** Follows an address: of a question, of a filtered list, of a view. */
function follow(address) {
  const text = address.replace(/^#/, "");
  if (text === "" || text === "overview") return showView("overview");

  const parameters = new URLSearchParams(text);
  takeFilters(parameters);
  showFilters();
  chooseListed(null);
  showList();
  const wanted = numberOf.get(parameters.get("q"));
  if (wanted !== undefined) return go(wanted);
  go(innerWidth > 760 ? listed[0] ?? null : null);
  if (filters.text) changeFilters();
}

// Links within the page are followed here: in another page's frame they would lead out of it.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  if (link.dataset.number !== undefined) return go(Number(link.dataset.number));
  if (link.dataset.view === "questions") return go(current ?? (innerWidth > 760 ? listed[0] ?? null : null));
  const address = link.getAttribute("href");
  remember(address);
  follow(address);
  scrollTo(0, 0);
});
addEventListener("hashchange", () => follow(location.hash));

const KEYS = {
  j: () => move(1), ArrowRight: () => move(1), k: () => move(-1), ArrowLeft: () => move(-1),
  f: () => nextFailure(1), F: () => nextFailure(-1),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target.matches("input, select, textarea");
  if (event.key === "Escape" && isTyping) return event.target.blur();
  if (isTyping || (event.key.startsWith("Arrow") && event.target.matches(".wide"))) return;
  if (event.key === "/") {
    event.preventDefault();
    if (document.getElementById("questions").hidden) go(current);
    document.querySelector("#filters input").focus();
  } else if (KEYS[event.key] && (!event.key.startsWith("Arrow") || !document.getElementById("questions").hidden)) {
    event.preventDefault();
    KEYS[event.key]();
  }
});

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
});

makeFilters(changeFilters);
makeHead();
showList();
follow(location.hash);
