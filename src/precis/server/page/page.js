"use strict";
// Texts reach the page by textContent alone. Nothing is loaded from, or sent to, another host.

const at = (id) => document.getElementById(id);
const make = (name, text = "", kind = "") => {
  const made = document.createElement(name);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
};
const STORE = "precis-history", MOST = 20, LONGEST_KEPT = 100000;
const METHODS = { extract: "choose sentences", abstract: "write" };
const RANGES = { words: [10, 400, 10, 80], sentences: [1, 20, 1, 3] };
const state = { facts: null, abort: null, results: [], source: "" };

// ---- settings

function addSetting(name) {
  const part = at("setting").content.cloneNode(true).firstElementChild;
  const one = (query) => part.querySelector(query);
  one("legend").textContent = name;
  const unit = one(".unit"), slider = one(".slider"), mode = one(".mode"), output = one("output");
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
  range();
  part.value = () => ({
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

const first = addSetting("Settings");
const second = addSetting("Other settings");
const compare = () => {
  second.hidden = !at("compare").checked;
  first.querySelector("legend").hidden = second.hidden;
};
at("compare").addEventListener("change", compare);
compare();

// ---- the server

const headers = () => {
  const key = at("key").value.trim();
  return { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) };
};

async function askFacts() {
  try {
    const answer = await fetch("v1/models", { headers: headers() });
    if (answer.status === 401) at("access").open = true;
    if (!answer.ok) return;
    state.facts = (await answer.json()).data[0].precis;
    first.offer();
    second.offer();
    tellSize();
  } catch { /* summarizing will say it */ }
}

async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
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
}

async function* summarize(text, options, signal) {
  const body = JSON.stringify({ text, support: true, stream: true, ...options });
  const response = await fetch("v1/summarize", { method: "POST", headers: headers(), body, signal });
  if (!response.ok) {
    const answer = await response.json().catch(() => null);
    if (response.status === 401) at("access").open = true;
    throw new Refusal(answer ? answer.error.message : `the server answered ${response.status}`, response);
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

const told = (error) => {
  if (error instanceof Refusal) {
    return `No summary: ${error.message}.${error.again ? ` Try again in ${error.again} seconds.` : ""}`;
  }
  return "The server does not answer. Your text is still here: try again when the server is back.";
};

// ---- the document

const bytesOf = (text) => new Blob([text]).size;
let measuring = 0;
function tellSize() {
  clearTimeout(measuring);
  measuring = setTimeout(() => {
    const tokens = Math.ceil(bytesOf(at("text").value) / 4), most = state.facts && state.facts.max_document_tokens;
    const tooLong = most && tokens > most;
    at("size").textContent = tokens < 2 ? "" : `About ${tokens.toLocaleString("en")} tokens` +
      (tooLong ? `; this server takes ${most.toLocaleString("en")}. Shorten the text.` : ".");
  }, 150);
}
at("text").addEventListener("input", tellSize);

async function open(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (text.includes("\0")) throw new TypeError("not a text");
    edit();
    at("text").value = text;
    fail("");
    say(`${file.name} is open.`);
    tellSize();
  } catch {
    fail(`${file.name} is not a text file in UTF-8. Open a text file, or paste the text.`);
  }
}
at("file").addEventListener("change", () => {
  if (at("file").files.length) open(at("file").files[0]);
  at("file").value = "";
});
const pane = at("document");
for (const name of ["dragover", "dragleave", "drop"]) {
  pane.addEventListener(name, (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    pane.classList.toggle("drop", name === "dragover");
    if (name === "drop") open(event.dataTransfer.files[0]);
  });
}

function edit() {
  at("source").hidden = at("edit").hidden = true;
  at("text").hidden = false;
}
at("edit").addEventListener("click", () => { edit(); at("text").focus(); });

// The server counts code points, this language UTF-16 units.
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

function showSource() {
  const text = state.source, passages = new Map();
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
    parts.push(mark);
    from = stop;
  }
  parts.push(document.createTextNode(text.slice(from)));
  at("source").replaceChildren(...parts);
  at("source").hidden = at("edit").hidden = at("hint").hidden = false;
  at("text").hidden = true;
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
  try {
    await navigator.clipboard.writeText(part.summary);
    say("The summary is copied.");
  } catch {
    fail("The browser does not allow copying here. Select the summary and copy it.");
  }
}

function addSentence(part, sentence) {
  const item = make("li"), button = make("button", "", "sentence"), facts = make("ul", "", "facts");
  button.type = "button";
  const places = unitPlaces(sentence.text, (sentence.marks || []).flatMap((m) => [m.start - sentence.start, m.end - sentence.start]));
  let from = 0;
  for (const mark of sentence.marks || []) {
    const [begin, stop] = [places.get(mark.start - sentence.start), places.get(mark.end - sentence.start)];
    if (begin >= from) {
      button.append(sentence.text.slice(from, begin), make("mark", sentence.text.slice(begin, stop)));
      from = stop;
    }
    facts.append(make("li", `Look at “${mark.text}”: ${mark.reason}.`, "doubt"));
  }
  button.append(sentence.text.slice(from));
  for (const { text } of sentence.support || []) {
    facts.append(make("li", text === sentence.text ? "Word for word in the document." : `Source: ${text}`, "passage-text"));
  }
  if (sentence.support && !sentence.support.length) facts.append(make("li", "No passage of the document is close to this."));
  const light = (scroll) => lightUp(item, sentence, scroll);
  button.addEventListener("mouseenter", () => light(true));
  button.addEventListener("focus", () => light(true));
  button.addEventListener("click", () => light(true));
  button.addEventListener("keydown", (event) => move(event, button));
  item.append(button, facts);
  part.querySelector(".sentences").append(item);
}

function lightUp(item, sentence, scroll) {
  for (const lit of document.querySelectorAll(".on")) lit.classList.remove("on");
  item.classList.add("on");
  let top = null;
  for (const { start, end } of sentence.support || []) {
    const mark = at("source").querySelector(`mark[data-place="${start}-${end}"]`);
    if (!mark) continue;
    mark.classList.add("on");
    top = top || mark;
  }
  if (top && scroll) {
    const box = at("source"), shift = top.getBoundingClientRect().top - box.getBoundingClientRect().top;
    if (shift < 0 || shift > box.clientHeight - 60) box.scrollTop += shift - box.clientHeight / 3;
  }
}

function move(event, button) {
  const all = [...document.querySelectorAll(".sentence")], place = all.indexOf(button);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && all[place + step]) {
    event.preventDefault();
    all[place + step].focus();
  } else if (event.key === "Enter") {
    const mark = at("source").querySelector("mark.on");
    if (!mark) return;
    event.preventDefault();
    mark.focus();
    mark.onkeydown = (key) => { if (key.key === "Escape") button.focus(); };
  }
}

function endResult(part, summary) {
  const note = part.querySelector(".read");
  note.textContent = summary.read.note + (summary.finished ? "" : " The last sentence is cut to keep the length.");
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

const label = (options) => {
  const [unit] = Object.keys(RANGES).filter((name) => options[name]);
  const length = unit ? `at most ${options[unit]} ${unit}` : "length that suits the text";
  return options.mode ? `${METHODS[options.mode] || options.mode}, ${length}` : length;
};

async function run(event) {
  event.preventDefault();
  const text = at("text").value;
  if (!text.trim()) {
    fail("There is no text yet. Paste one, or open a file.");
    if (!at("text").hidden) at("text").focus();
    return;
  }
  const asked = [first.value(), ...(second.hidden ? [] : [second.value()])];
  fail("");
  say("Working …");
  Object.assign(state, { abort: new AbortController(), results: [], source: text });
  at("results").replaceChildren();
  at("hint").hidden = true;
  at("go").disabled = true;
  at("stop").hidden = false;
  const began = performance.now();
  try {
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
    say(`Done in ${((performance.now() - began) / 1000).toFixed(1)} seconds.`);
  } catch (error) {
    say(error.name === "AbortError" ? "Stopped." : "");
    if (error.name !== "AbortError") fail(told(error));
  } finally {
    at("go").disabled = false;
    at("stop").hidden = true;
    state.abort = null;
    if (state.results.length) {
      showSource();
      remember();
    }
  }
}
at("form").addEventListener("submit", run);
at("stop").addEventListener("click", () => state.abort && state.abort.abort());

// ---- history

function past() {
  try {
    const kept = JSON.parse(localStorage.getItem(STORE) || "[]");
    return Array.isArray(kept) ? kept : [];
  } catch {
    return [];
  }
}

function keep(entries) {
  for (let most = MOST; most >= 0; most -= 1) {
    try {
      localStorage.setItem(STORE, JSON.stringify(entries.slice(0, most)));
      break;
    } catch { /* no place: keep fewer */ }
  }
  showHistory();
}

function remember() {
  if (state.source.length > LONGEST_KEPT) return;
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
}

function restore(entry) {
  if (state.abort) return;
  at("text").value = state.source = entry.text;
  state.results = entry.results;
  at("results").replaceChildren();
  for (const result of entry.results) {
    const part = addResult(label(result.options));
    for (const sentence of result.sentences) addSentence(part, sentence);
    endResult(part, result);
  }
  showSource();
  fail("");
  say("An earlier summary is shown.");
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
