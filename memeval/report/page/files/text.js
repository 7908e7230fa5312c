// Text of models and data is text: it enters the page as text nodes only. What would change how the
// text around it is read (direction marks, control characters) is written out.
const ODD = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;

function escaped(character) {
  const code = character.codePointAt(0);
  if (code > 0xffff) return "\\U" + code.toString(16).padStart(8, "0");
  return code > 0xff ? "\\u" + code.toString(16).padStart(4, "0") : "\\x" + code.toString(16).padStart(2, "0");
}

function textNodes(text) {
  if (text.search(ODD) < 0) return document.createTextNode(text);

  const fragment = document.createDocumentFragment();
  let end = 0;
  for (const match of text.matchAll(ODD)) {
    fragment.append(text.slice(end, match.index));
    const odd = document.createElement("span");
    odd.className = "odd";
    odd.textContent = escaped(match[0]);
    fragment.append(odd);
    end = match.index + match[0].length;
  }
  fragment.append(text.slice(end));
  return fragment;
}

/** An element with attributes (those that are null are left out) and children: nodes or text. */
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    made.append(child instanceof Node ? child : textNodes(String(child)));
  }
  return made;
}

const ENDS = {
  r: ["●", "right"],
  w: ["×", "wrong"],
  a: ["○", "abstained"],
  u: ["?", "not scored"],
  f: ["!", "failed"],
  m: ["◐", "repeats differ"],
  "-": ["·", "not asked"],
};

const marksMade = {};

/** A list has thousands of marks: each kind is made once and copied. */
function markOf(end) {
  const [sign, word] = ENDS[end];
  marksMade[end] ||= element("span", { class: `mark ${end === "-" ? "n" : end}`, role: "img", "aria-label": word, title: word }, sign);
  return marksMade[end].cloneNode(true);
}

function inThousands(number) {
  return number.toLocaleString("en-US");
}

function plural(number, noun) {
  return `${inThousands(number)} ${noun}${number === 1 ? "" : "s"}`;
}

function asTime(milliseconds) {
  if (milliseconds > 0 && milliseconds < 0.095) return `${Number(milliseconds.toPrecision(2))} ms`;
  if (milliseconds < 10) return `${milliseconds.toFixed(1)} ms`;
  return milliseconds < 1000 ? `${milliseconds.toFixed(0)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}
