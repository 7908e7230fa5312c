// The list: rows are made as far as one scrolls.
const CHUNK_OF_ROWS = 80;
const list = document.getElementById("list");
const tally = document.getElementById("tally");
const sentinel = element("li", { "aria-hidden": "true" });
let rowsMade = 0;

function rowOf(number) {
  return element("li", {},
    element("a", { href: addressOf(number), "data-number": number, "aria-current": number === current ? "true" : null },
      element("span", { class: "words" },
        element("span", { class: "id" }, index.ids[number]),
        element("span", { class: "text", dir: "auto" }, index.text[number])),
      element("span", { class: "marks" }, index.marks.map((marks) => markOf(marks[number])))));
}

function makeRows(until) {
  const end = Math.min(until, listed.length);
  const rows = document.createDocumentFragment();
  for (; rowsMade < end; rowsMade += 1) rows.append(rowOf(listed[rowsMade]));
  list.insertBefore(rows, sentinel);
}

new IntersectionObserver((entries) => {
  if (entries.some((entry) => entry.isIntersecting)) makeRows(rowsMade + CHUNK_OF_ROWS);
}, { rootMargin: "600px" }).observe(sentinel);

function showList() {
  rowsMade = 0;
  list.replaceChildren(sentinel);
  list.scrollTop = 0;
  makeRows(CHUNK_OF_ROWS);

  const isFiltered = filtersInAddress().length > 0;
  tally.replaceChildren(
    element("span", {}, isFiltered ? `${inThousands(listed.length)} of ${plural(total, "question")}` : plural(total, "question")),
    isFiltered ? element("button", { type: "button", click: clearFilters }, "Clear") : "");
}

function showCurrentRow() {
  for (const row of list.querySelectorAll("a[aria-current]")) row.removeAttribute("aria-current");
  const place = listed.indexOf(current);
  if (place < 0) return;

  makeRows(place + 1);
  const row = list.children[place].firstElementChild;
  row.setAttribute("aria-current", "true");
  if (list.offsetParent) row.scrollIntoView({ block: "nearest" });
}

/** What the marks mean, and the number of each cell above its column. */
function makeHead() {
  // On a phone four columns of marks leave room for the words, on a wider screen eight.
  list.parentElement.classList.toggle("many", index.cells.length > 4);
  list.parentElement.classList.toggle("most", index.cells.length > 8);
  const ends = Object.keys(ENDS).filter((end) => index.marks.some((marks) => marks.includes(end)));
  const legend = ends.map((end) => element("span", {}, `${ENDS[end][0]}\u00a0${ENDS[end][1].replaceAll(" ", "\u00a0")} `));
  const head = element("div", { class: "head", "aria-hidden": "true" },
    element("span", { class: "legend" }, legend),
    several && element("span", { class: "marks" }, index.cells.map((cell, number) => element("span", { title: cell }, String(number + 1)))));
  list.before(head);
}
