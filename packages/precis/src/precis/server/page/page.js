"use strict";
// Text reaches the page only as textContent. The page never loads from or sends to another host.

const at = (id) => document.getElementById(id);
const make = (name, text = "", kind = "") => {
  const made = document.createElement(name);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
};
const STORE = "precis-history", MOST = 20, LONGEST_KEPT = 100000;
const METHODS = { extract: "choose sentences", abstract: "write" };
const MADE = { extract: "chosen sentences", abstract: "written summary" };
const DOES = { extract: "This server's model chooses sentences of the document.", abstract: "This server's model writes the summary." };
const PARTS = { topics: "Topics", decisions: "Decisions", actions: "Actions", questions: "Open questions", next: "Next meeting" };
const RANGES = { words: [10, 400, 10, 80], sentences: [1, 20, 1, 3] };
// source: the summarized text
const state = { facts: null, abort: null, results: [], source: "", clock: 0, opening: null };

// ---- settings

function addSetting(name) {
  const part = at("setting").content.cloneNode(true).firstElementChild;
  const one = (query) => part.querySelector(query);
  one("legend").textContent = name;
  const unit = one(".unit"), slider = one(".slider"), mode = one(".mode"), type = one(".type"), about = one(".about"), output = one("output");
  const show = () => {
    output.textContent = `${slider.value} ${slider.value === "1" ? unit.value.slice(0, -1) : unit.value}`;
    slider.setAttribute("aria-valuetext", output.textContent);
  };
  const range = () => {
    one(".length").hidden = !unit.value;
    if (!unit.value) return;
    [slider.min, slider.max, slider.step, slider.value] = RANGES[unit.value];
    show();
  };
  unit.addEventListener("change", range);
  slider.addEventListener("input", show);
  // A form without a length of its own suits the text; the paragraph begins with the length of the page.
  type.addEventListener("change", () => { unit.value = type.value === "paragraph" ? "words" : ""; range(); });
  range();
  part.value = () => ({
    ...(type.value === "paragraph" ? {} : { type: type.value }),
    ...(about.value.trim() ? { about: about.value.trim() } : {}),
    ...(unit.value ? { [unit.value]: Number(slider.value) } : {}),
    ...(mode.value ? { mode: mode.value } : {}),
  });
  part.offer = () => {
    const modes = state.facts ? state.facts.modes : [];
    one(".mode-field").hidden = modes.length < 2;
    mode.replaceChildren(...modes.map((value) => Object.assign(make("option", METHODS[value] || value), { value })));
  };
  part.offer();
  at("settings").append(part);
  return part;
}

const first = addSetting("First settings");
const second = addSetting("Second settings");
// Equal settings compare nothing: the second begins with the other method, or with half the length.
const differ = () => {
  const [mine, other] = [first, second].map((part) => (query) => part.querySelector(query));
  for (const query of [".type", ".unit"]) { // a type sets its own unit
    other(query).value = mine(query).value;
    other(query).dispatchEvent(new Event("change"));
  }
  const rest = [...other(".mode").options].find(({ value }) => value !== mine(".mode").value);
  if (rest) other(".mode").value = rest.value;
  other(".slider").value = rest ? mine(".slider").value : Number(mine(".slider").value) / 2;
  other(".slider").dispatchEvent(new Event("input"));
};
at("compare").addEventListener("change", () => { if (at("compare").checked) differ(); });
const compare = () => {
  second.hidden = !at("compare").checked;
  first.querySelector("legend").hidden = second.hidden;
};
at("compare").addEventListener("change", compare);
compare();

// ---- the server

const access = () => {
  const key = at("key").value.trim();
  return key ? { authorization: `Bearer ${key}` } : {};
};
const headers = () => ({ "content-type": "application/json", ...access() });

// The server needs a key: move the field to a visible place.
function askForKey() {
  const access = at("access");
  if (access.nextElementSibling !== document.querySelector("main")) document.querySelector("main").before(access);
  access.open = true;
  return at("key").value.trim() ? "The server does not accept this key. Enter another one in the field Key."
    : "This server needs a key. Enter yours in the field Key.";
}

async function askFacts() {
  try {
    const answer = await fetch("v1/models", { headers: headers() });
    if (answer.status === 401) fail(askForKey());
    if (!answer.ok) return;
    state.facts = (await answer.json()).data[0].precis;
    fail("");
    first.offer();
    second.offer();
    const modes = state.facts.modes;
    at("does").textContent = modes.length === 1 ? DOES[modes[0]] || "" : "";
    tellSize();
  } catch { /* summarizing will report it */ }
}

async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const found = /^event: (.*)\ndata: (.*)$/s.exec(part);
        if (found) yield [found[1], JSON.parse(found[2])];
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // the caller has finished
  }
}

async function* summarize(text, options, signal) {
  const body = JSON.stringify({ text, support: true, stream: true, ...options });
  const response = await fetch("v1/summarize", { method: "POST", headers: headers(), body, signal });
  if (!response.ok) {
    if (response.status === 401) throw new KeyNeeded(askForKey());
    const answer = await response.json().catch(() => null);
    throw new Refusal(answer && answer.error ? answer.error.message : `the server answered ${response.status}`, response);
  }
  for await (const [name, value] of eventsOf(response)) {
    if (name === "error") throw new Refusal(value.error.message, response);
    yield [name, value];
    if (name === "done") return;
  }
  throw new TypeError("the stream ended early");
}

class Refusal extends Error {
  constructor(message, response) {
    super(message);
    this.again = response.headers.get("retry-after");
  }
}

class KeyNeeded extends Error {}

const told = (error) => {
  if (error instanceof KeyNeeded) return error.message;
  if (error instanceof Refusal) {
    return `No summary: ${error.message}.${error.again ? ` Try again in ${error.again} seconds.` : ""}`;
  }
  return "The server does not respond. Your text is still here: try again when the server is back.";
};

// ---- the document

const bytesOf = (text) => new Blob([text]).size;
const count = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
let measuring = 0;
function tellSize() {
  clearTimeout(measuring);
  measuring = setTimeout(() => {
    const tokens = Math.ceil(bytesOf(at("text").value) / 4), most = state.facts && state.facts.max_document_tokens;
    const tooLong = Boolean(most) && tokens > most;
    at("size").textContent = !tokens ? "No text at hand?" : `About ${count(tokens, "token")}` +
      (tooLong ? `; this server accepts ${most.toLocaleString("en")}. Shorten the text.` : ".");
    at("size").classList.toggle("problem", tooLong);
    at("try").hidden = tokens > 0;
  }, 150);
}

// dir="auto" would detect this too, but takes a minute for 2 MB in one paragraph.
const directionOf = (text) => (/^[^\p{L}]*[\u0591-\u07ff\ufb1d-\ufdfd\ufe70-\ufefc]/u.test(text.slice(0, 500)) ? "rtl" : "ltr");

// Show whether the results belong to another text.
function tellStale() {
  const stale = state.results.length > 0 && at("text").value !== state.source;
  at("stale").hidden = !stale;
  at("edit").textContent = at("text").hidden ? "Edit the text" : "Back to the passages";
  at("edit").hidden = !state.results.length || (stale && !at("text").hidden);
  at("hint").hidden = !state.results.length || at("source").hidden;
}

function changed() {
  at("text").dir = directionOf(at("text").value);
  tellSize();
  tellStale();
}
at("text").addEventListener("input", changed);
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("form").requestSubmit();
});
// A text pasted beside a summary is the next document: no field has to be opened for it.
addEventListener("paste", (event) => {
  const text = event.clipboardData.getData("text/plain");
  if (at("source").hidden || event.target.closest("input, select, textarea") || !text.trim()) return;
  event.preventDefault();
  put(text);
  at("text").focus();
});

function put(text) {
  edit();
  at("text").value = text;
  fail("");
  changed();
}

const ofKind = (file) => {
  const name = file.name.toLowerCase();
  return Boolean(state.facts) && state.facts.file_endings.some((ending) => name.endsWith(ending));
};

// Decode a text; null for other files.
function textOf(bytes) {
  const marked = { "255,254": "utf-16le", "254,255": "utf-16be" }[bytes.slice(0, 2).join()];
  try {
    const text = new TextDecoder(marked || "utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

const tooLarge = (file, most) => {
  if (!most || file.size <= most) return false;
  fail(`${file.name} has ${Math.ceil(file.size / 2 ** 20)} MB; this server accepts ${Math.floor(most / 2 ** 20)} MB. Open a smaller file.`);
  return true;
};

async function open(file) {
  const facts = state.facts || {};
  if (!ofKind(file)) {
    if (tooLarge(file, facts.max_body_bytes)) return;
    const text = textOf(new Uint8Array(await file.arrayBuffer()));
    if (text !== null) {
      state.opening = null; // this file is the newer one
      put(text);
      say(`${file.name} is open.`);
      return;
    }
  }
  if (!tooLarge(file, facts.max_files_bytes)) await readOnServer(file);
}

// PDF, Word, mail and others become text on the server, as on its command line.
async function readOnServer(file) {
  const opening = state.opening = {}, before = at("text").value;
  fail("");
  say(`Reading ${file.name} …`);
  const body = new FormData();
  body.append("file", file);
  try {
    const response = await fetch("v1/documents", { method: "POST", headers: access(), body });
    if (response.status === 401) throw new KeyNeeded(askForKey());
    const answer = await response.json().catch(() => null);
    if (!response.ok) throw new Refusal(answer && answer.error ? answer.error.message : `the server answered ${response.status}`, response);
    if (state.opening !== opening) return; // a newer file was opened
    const [{ text, notes }] = answer.documents;
    if (at("text").value !== before) {
      say("");
      fail(`${file.name} is read, but you changed the text meanwhile. Open the file again to replace your text.`);
      return;
    }
    put(text);
    say(`${file.name} is open.${notes.length ? ` Note: ${notes.join("; ")}.` : ""}`);
  } catch (error) {
    if (state.opening !== opening) return;
    say("");
    const named = error.message.startsWith(file.name) ? "" : `${file.name}: `;
    fail(error instanceof Refusal ? `Not opened: ${named}${error.message}.` : told(error));
  }
}
at("file").addEventListener("change", () => {
  if (at("file").files.length) open(at("file").files[0]);
  at("file").value = "";
});
at("try").addEventListener("click", () => {
  put(at("example").content.textContent.trim());
  at("form").requestSubmit();
  at("results").focus(); // this button disappears
});
// Anywhere on the page, since a file dropped outside the field would replace the page and the text.
for (const name of ["dragover", "dragleave", "drop"]) {
  addEventListener(name, (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    at("document").classList.toggle("drop", name === "dragover");
    if (name === "drop" && event.dataTransfer.files.length) open(event.dataTransfer.files[0]);
  });
}

function edit() {
  at("source").hidden = true;
  at("text").hidden = false;
  tellStale();
}
at("edit").addEventListener("click", () => {
  if (at("text").hidden) {
    edit();
    at("text").focus();
  } else {
    showSource();
    at("source").focus();
  }
});

// The server counts code points, JavaScript UTF-16 units.
function unitPlaces(text, places) {
  const sorted = [...new Set(places)].sort((a, b) => a - b), found = new Map();
  let unit = 0, point = 0;
  for (const place of sorted) {
    while (point < place && unit < text.length) {
      unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
      point += 1;
    }
    found.set(place, unit);
  }
  return found;
}

// Join lines that were wrapped at a fixed width. All offsets stay valid.
function unwrapped(text) {
  const lines = text.split("\n"), widest = lines.reduce((most, line) => Math.max(most, line.length), 0);
  if (widest < 50 || widest > 100) return text;
  return lines.map((line, place) => {
    if (place + 1 === lines.length) return line;
    const next = lines[place + 1].split(" ", 1)[0];
    return line + (line && next && line.length + 1 + next.length > widest ? " " : "\n");
  }).join("");
}

function showSource() {
  const text = unwrapped(state.source), passages = new Map();
  for (const result of state.results) {
    for (const sentence of result.sentences) {
      for (const { start, end } of sentence.support || []) passages.set(`${start}-${end}`, [start, end]);
    }
  }
  const sorted = [...passages.values()].sort((a, b) => a[0] - b[0]);
  const places = unitPlaces(text, sorted.flat()), parts = [];
  let from = 0;
  for (const [start, end] of sorted) {
    const [begin, stop] = [places.get(start), places.get(end)];
    if (begin < from) continue;
    parts.push(document.createTextNode(text.slice(from, begin)));
    const mark = make("mark", text.slice(begin, stop));
    mark.dataset.place = `${start}-${end}`;
    mark.tabIndex = -1;
    mark.addEventListener("click", () => sentenceOf(mark)?.focus());
    mark.addEventListener("keydown", (event) => { if (event.key === "Escape") sentenceOf(mark)?.focus(); });
    parts.push(mark);
    from = stop;
  }
  parts.push(document.createTextNode(text.slice(from)));
  at("source").replaceChildren(...parts);
  at("source").dir = directionOf(text);
  at("source").hidden = false;
  at("text").hidden = true;
  tellStale();
}

// ---- summaries

function addResult(name) {
  const part = at("result").content.cloneNode(true).firstElementChild;
  part.querySelector("h3").textContent = name[0].toUpperCase() + name.slice(1);
  part.querySelector(".copy").addEventListener("click", () => copy(part));
  part.querySelector(".copy").hidden = true;
  at("results").append(part);
  return part;
}

async function copy(part) {
  const button = part.querySelector(".copy");
  try {
    await navigator.clipboard.writeText(part.summary);
    say("Copied the summary.");
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  } catch {
    fail("The browser does not allow copying here. Select the summary and copy it.");
  }
}

// Not a button, since the text of a button cannot be selected.
function addSentence(part, sentence) {
  const list = part.querySelector(".sentences");
  if (sentence.part && (!list.lastElementChild || list.lastElementChild.group !== sentence.part)) {
    const heading = make("li", PARTS[sentence.part] || sentence.part, "part");
    Object.assign(heading, { group: sentence.part, places: [] }); // `part` is a list of the browser's own
    list.append(heading);
  }
  const item = make("li"), shown = make("div", "", "sentence"), facts = make("ul", "", "facts");
  facts.id = `facts-${document.querySelectorAll(".facts").length}`;
  Object.assign(shown, { tabIndex: 0, role: "button", dir: directionOf(sentence.text) });
  shown.setAttribute("aria-describedby", facts.id);
  const places = unitPlaces(sentence.text, (sentence.marks || []).flatMap((m) => [m.start - sentence.start, m.end - sentence.start]));
  let from = 0;
  for (const mark of sentence.marks || []) {
    const [begin, stop] = [places.get(mark.start - sentence.start), places.get(mark.end - sentence.start)];
    if (begin >= from) {
      shown.append(sentence.text.slice(from, begin), make("mark", sentence.text.slice(begin, stop)));
      from = stop;
    }
    facts.append(make("li", `Look at “${mark.text}”: ${mark.reason}.`, "doubt"));
  }
  shown.append(sentence.text.slice(from));
  if (sentence.origin === "written") facts.append(make("li", "Written by the model.", "when-open"));
  if (sentence.reason) facts.append(make("li", `Quoted instead of a written sentence: ${sentence.reason}.`, "when-open"));
  item.places = (sentence.support || []).map(({ start, end }) => `${start}-${end}`);
  shown.addEventListener("mouseenter", () => lightUp(item));
  shown.addEventListener("focus", () => { lightUp(item); if (shown.matches(":focus-visible")) unfold(item); });
  shown.addEventListener("click", () => { lightUp(item); unfold(item); });
  shown.addEventListener("keydown", (event) => move(event, shown));
  item.append(shown, facts, ...passagesOf(item, sentence, facts));
  item.group = sentence.part;
  list.append(item);
}

// List the passages in `facts`; the button follows outside it, so that it is not part of the sentence's description.
function passagesOf(item, sentence, facts) {
  if (!sentence.support) return [];
  for (const { text } of sentence.support) {
    facts.append(make("li", text === sentence.text ? "Word for word in the document." : `Source: ${text}`, "when-open"));
  }
  if (!sentence.support.length) {
    facts.append(make("li", "No passage of the document is similar to this."));
    return [];
  }
  const go = make("button", "Show in the document", "when-open go");
  go.type = "button";
  go.addEventListener("click", () => goToPassage(item));
  return [go];
}

const markOf = (place) => at("source").querySelector(`mark[data-place="${place}"]`);

function sentenceOf(mark) {
  const items = [...document.querySelectorAll(".sentences > li")].filter((item) => item.places.includes(mark.dataset.place));
  const item = items.find((one) => one.classList.contains("on")) || items[0];
  return item && item.querySelector(".sentence");
}

function lightUp(item) {
  for (const lit of document.querySelectorAll(".on")) lit.classList.remove("on");
  item.classList.add("on");
  const marks = item.places.map(markOf).filter(Boolean), box = at("source");
  for (const mark of marks) mark.classList.add("on");
  if (!marks.length || box.hidden) return;
  const shift = marks[0].getBoundingClientRect().top - box.getBoundingClientRect().top;
  if (shift < 0 || shift > box.clientHeight - 60) box.scrollTop += shift - box.clientHeight / 3;
}

// Not on hover, which would move the content below the pointer.
function unfold(item) {
  for (const open of document.querySelectorAll(".open")) open.classList.remove("open");
  item.classList.add("open");
}

function goToPassage(item) {
  if (at("source").hidden && at("text").value === state.source) showSource();
  lightUp(item);
  unfold(item);
  const mark = at("source").querySelector("mark.on");
  if (mark) mark.focus();
}

function move(event, shown) {
  const all = [...document.querySelectorAll(".sentence")], place = all.indexOf(shown);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && all[place + step]) {
    event.preventDefault();
    all[place + step].focus();
  } else if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    goToPassage(shown.closest("li"));
  }
}

function endResult(part, summary) {
  const note = part.querySelector(".read");
  note.textContent = summary.read.note + (summary.finished ? "" : " The last sentence is truncated to the length limit.");
  note.classList.toggle("partly", !summary.read.complete);
  part.summary = summary.summary;
  part.querySelector(".copy").hidden = false;
  const unchecked = Object.entries(summary.unchecked || {});
  const line = part.querySelector(".unchecked");
  line.hidden = !unchecked.length;
  line.textContent = unchecked.map(([kind, why]) => `Not checked for ${kind}s: ${why}.`).join(" ");
}

const say = (text) => { at("status").textContent = text; };
const fail = (text) => {
  at("problem").textContent = text;
  at("problem").hidden = !text;
};

const nameOf = (type) => first.querySelector(`.type option[value="${CSS.escape(type)}"]`)?.textContent || type;
const label = (options) => {
  const [unit] = Object.keys(RANGES).filter((name) => options[name]);
  const length = unit ? `at most ${options[unit]} ${unit}` : "length that suits the text";
  const about = options.about ? `about “${options.about}”` : "";
  return [options.type && nameOf(options.type), about, MADE[options.mode] || options.mode, length].filter(Boolean).join(", ");
};

// Show seconds, but do not announce each one.
function startClock() {
  const began = performance.now(), seconds = () => (performance.now() - began) / 1000;
  state.clock = setInterval(() => { at("clock").textContent = `${Math.round(seconds())} s`; }, 1000);
  return seconds;
}

function busy(works) {
  at("go").setAttribute("aria-disabled", works); // `disabled` would lose the focus
  at("stop").hidden = !works;
  if (works) return;
  clearInterval(state.clock);
  at("clock").textContent = "";
  state.abort = null;
}

async function summarizeEach(text, asked) {
  for (const options of asked) {
    const part = addResult(label(options));
    try {
      for await (const [name, value] of summarize(text, options, state.abort.signal)) {
        if (name === "sentence") addSentence(part, value);
        if (name !== "summary") continue;
        endResult(part, value);
        state.results.push({ ...value, options });
      }
    } catch (error) {
      if (!part.summary) part.remove();
      throw error;
    }
  }
}

async function run(event) {
  event.preventDefault();
  if (state.abort) return;
  const text = at("text").value;
  if (!text.trim()) {
    fail("There is no text yet. Paste text, or open a file.");
    if (!at("text").hidden) at("text").focus();
    return;
  }
  fail("");
  say("Working …");
  Object.assign(state, { abort: new AbortController(), results: [], source: text });
  at("results").replaceChildren();
  at("welcome").hidden = true;
  edit();
  busy(true);
  const seconds = startClock();
  try {
    await summarizeEach(text, [first.value(), ...(second.hidden ? [] : [second.value()])]);
    const took = seconds() < 1 ? "less than a second" : `${seconds().toFixed(1)} seconds`;
    say(`Done in ${took}: ${state.results.map((one) => count(one.sentences.length, "sentence")).join(" and ")}.`);
  } catch (error) {
    say(error.name === "AbortError" ? "Stopped." : "");
    if (error.name !== "AbortError") fail(told(error));
  } finally {
    busy(false);
    if (state.results.length) {
      if (at("text").value === text) showSource(); // keep a text that was entered meanwhile
      remember();
    }
    tellStale();
  }
}
at("form").addEventListener("submit", run);
at("stop").addEventListener("click", () => {
  if (state.abort) state.abort.abort();
  at("go").focus();
});

// ---- history

function past() {
  try {
    const kept = JSON.parse(localStorage.getItem(STORE) || "[]");
    return kept.filter((entry) => typeof entry.text === "string" && Array.isArray(entry.results));
  } catch {
    return [];
  }
}

function keep(entries) {
  for (let most = MOST; most >= 0; most -= 1) {
    try {
      localStorage.setItem(STORE, JSON.stringify(entries.slice(0, most)));
      break;
    } catch { /* storage full: keep fewer */ }
  }
  showHistory();
}

function remember() {
  if (state.source.length > LONGEST_KEPT) {
    say(`${at("status").textContent} The text is too long for the history.`);
    return;
  }
  keep([{ when: Date.now(), text: state.source, results: state.results }, ...past()]);
}

function showHistory() {
  at("entries").replaceChildren(...past().map((entry) => {
    const item = make("li"), when = new Date(entry.when).toLocaleString();
    const button = make("button", `${when} · ${entry.text.trim().slice(0, 70)}`);
    button.type = "button";
    button.addEventListener("click", () => restore(entry));
    item.append(button);
    return item;
  }));
  at("forget").hidden = !past().length;
  at("kept").textContent = past().length ? `Only this browser keeps the last ${MOST} summaries.` : "No summaries yet.";
}

function restore(entry) {
  if (state.abort) {
    fail("A summary is running. Stop it, or wait until it ends.");
    return;
  }
  at("text").value = state.source = entry.text;
  at("welcome").hidden = true;
  state.results = entry.results;
  at("results").replaceChildren();
  for (const result of entry.results) {
    const part = addResult(label(result.options));
    for (const sentence of result.sentences) addSentence(part, sentence);
    endResult(part, result);
  }
  showSource();
  fail("");
  say("Showing an earlier summary.");
  changed();
  at("results").focus();
}
at("forget").addEventListener("click", () => keep([]));

// ---- the key

try { at("key").value = sessionStorage.getItem("precis-key") || ""; } catch { /* no storage */ }
at("key").addEventListener("change", () => {
  try { sessionStorage.setItem("precis-key", at("key").value.trim()); } catch { /* no storage */ }
  askFacts();
});

showHistory();
askFacts();
