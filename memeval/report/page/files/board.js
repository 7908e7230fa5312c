// Every table can be read without this: it adds sorting by a column, a search and a filter.
for (const table of document.querySelectorAll("table.sortable")) {
  for (const head of table.querySelectorAll("thead th[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.dataset.sort = head.dataset.sort;
    head.replaceChildren(button);
  }

  // A short table is seen at once.
  if (table.tBodies[0].rows.length < 4) continue;

  const find = document.createElement("div");
  find.className = "find";
  find.innerHTML = '<label>Search<input type="search"></label><label>Show<select><option value="">all runs</option><option value="system">systems</option><option value="baseline">baselines</option></select></label><span class="soft" role="status"></span>';
  const [input, select, tally] = [find.querySelector("input"), find.querySelector("select"), find.querySelector("span")];
  const update = () => {
    const words = input.value.toLowerCase().split(/\s+/);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word)) || (select.value !== "" && row.dataset.kind !== select.value);
      shown += !row.hidden;
    }
    tally.textContent = `${shown} of ${table.tBodies[0].rows.length} rows`;
  };
  input.addEventListener("input", update);
  select.addEventListener("change", update);
  table.closest(".wide").before(find);
  update();
}
