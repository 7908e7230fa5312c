// The data of the page: an index that is read at once, and blocks that are unpacked when needed.
const index = JSON.parse(document.getElementById("index").textContent);
const blocks = [...document.querySelectorAll("script.block")];
const unpacked = new Map();
const total = index.ids.length;
const numberOf = new Map(index.ids.map((id, number) => [id, number]));

function unpack(number) {
  if (!unpacked.has(number)) unpacked.set(number, unpackNow(blocks[number].textContent));
  return unpacked.get(number);
}

async function unpackNow(base64) {
  const bytes = Uint8Array.from(atob(base64.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** A text of a block: a string, or what it is joined of. null where it is not in the page. */
function textAt(block, position) {
  if (position === null || position === undefined) return null;
  const text = block.texts[position];
  if (typeof text === "string") return text;
  return text.of.map((part) => textAt(block, part)).join(text.join);
}

/** The text of a turn: of the smallest chunk that any cell retrieved with it for a question of its
    conversation. Other conversations of a block may have turns of the same id. */
function turnText(block, conversation, id) {
  if (!block.chunkOfTurn) {
    block.chunkOfTurn = new Map();
    for (const [name, question] of Object.entries(block.questions)) {
      const own = index.case[numberOf.get(name)];
      for (const place of question.answers.flat().flatMap((answer) => answer.chunks || [])) {
        const [position, turns] = block.chunks[place];
        if (position === null) continue;
        for (const turn of turns) {
          const known = block.chunkOfTurn.get(`${own} ${turn}`);
          if (!known || turns.length < known[1].length) block.chunkOfTurn.set(`${own} ${turn}`, [position, turns]);
        }
      }
    }
  }
  const chunk = block.chunkOfTurn.get(`${conversation} ${id}`);
  return chunk ? { text: textAt(block, chunk[0]), turns: chunk[1] } : null;
}

let answersFolded = null;

/** All answers to each question, in lower case, for the search; unpacks every block once. */
function answersForSearch() {
  answersFolded ||= Promise.all(blocks.map((_, number) => unpack(number))).then((all) => {
    const texts = new Array(total).fill("");
    for (const block of all) {
      for (const [id, question] of Object.entries(block.questions)) {
        const answers = question.answers.flat().map((answer) => answer.answer || "");
        texts[numberOf.get(id)] = answers.join("\n").toLowerCase();
      }
    }
    return texts;
  });
  return answersFolded;
}
