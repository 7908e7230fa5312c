// Tables sort by the column whose name is pressed; figures that were not measured stay last.
for (const button of document.querySelectorAll("th button[data-sort]")) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const column = [...head.parentElement.children].indexOf(head);
    const isFigure = button.dataset.sort === "figure";
    const before = head.getAttribute("aria-sort");
    const descending = before ? before === "ascending" : isFigure && column > 0;
    for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");

    const body = head.closest("table").tBodies[0];
    const valueOf = (row) => (isFigure ? row.children[column].dataset.value : row.children[column].textContent.trim().replace(/^–$/, ""));
    const rows = [...body.rows].map((row) => [valueOf(row), row]);
    rows.sort(([left], [right]) => {
      if (left === "" || right === "") return (left === "") - (right === "");
      const order = isFigure ? Number(left) - Number(right) : left.localeCompare(right, "en", { numeric: true });
      return descending ? -order : order;
    });
    body.append(...rows.map(([, row]) => row));
  });
}
