// The judge's page. Texts are set as text, never as HTML.
const $ = (id) => document.getElementById(id);
const SIDES = ["left", "same", "right"];
const LABELS = { left: "A is better", same: "The same", right: "B is better" };

let state = null; // the judge, the questions and the progress
let page = null; // the source and the two summaries
let choices = {};
let reasons = {};
let now = 0; // index of the criterion that the keys answer
let passages = null; // of this page, once loaded
let picked = -1; // index of the highlighted sentence
let shownAt = 0;
let busy = false;

async function ask(path, body) {
  const headers = { "X-Precis-Judge": String(state ? state.number : "") };
  const options = { headers, cache: "no-store" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("The server does not answer. Your choices are not lost; try again.");
  }
  const record = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(record.error || `The server answered ${answer.status}.`);
  return record;
}

async function begin() {
  try {
    const token = location.hash.slice(1);
    if (token) {
      await ask("/api/enter", { token });
      history.replaceState(null, "", "/"); // keeps the token out of bookmarks and screenshots
    }
    state = await ask("/api/state");
  } catch (error) {
    return tell("This page needs your link", error.message);
  }
  $("instructions").textContent = state.instructions;
  buildCriteria();
  await open(state.next);
}

function tell(title, text, { back = false } = {}) {
  $("work").hidden = true;
  $("message").hidden = false;
  $("message-title").textContent = title;
  $("message-text").textContent = text;
  $("message-back").hidden = !back;
}

async function open(number) {
  progress();
  if (number >= state.pages) {
    page = null;
    return tell("Done, thank you", `You have judged all ${state.pages} pages. You can close this page.`, { back: true });
  }
  try {
    page = await ask(`/api/page/${number}`);
  } catch (error) {
    return tell("This page cannot be shown", error.message);
  }
  const draft = readDraft();
  choices = { ...page.choices, ...draft.choices };
  reasons = { ...page.reasons, ...draft.reasons };
  passages = null;
  picked = -1;
  shownAt = performance.now();
  $("message").hidden = true;
  $("work").hidden = false;
  for (const side of ["left", "right"]) $(side).textContent = page[side];
  $("source").textContent = page.document;
  $("truth").textContent = page.truth;
  $("truth-box").hidden = !page.truth;
  for (const id of ["source", "left", "right"]) $(id).scrollTop = 0;
  scrollTo(0, 0);
  light();
  now = Math.max(0, state.criteria.findIndex((one) => !choices[one.key]));
  $("back").disabled = number === 0;
  say("");
  draw();
  progress();
}

function progress() {
  const done = state.next;
  const bar = $("progress");
  bar.setAttribute("aria-valuemax", state.pages);
  bar.setAttribute("aria-valuenow", done);
  $("bar").style.width = `${(100 * done) / state.pages}%`;
  $("place").textContent = `${state.judge} · page ${Math.min(page ? page.page + 1 : done + 1, state.pages)} of ${state.pages}`;
}

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function buildCriteria() {
  $("criteria").replaceChildren(
    ...state.criteria.map((one, number) => {
      const row = element("div", { className: "criterion", id: `criterion-${one.key}` });
      row.setAttribute("role", "group");
      row.setAttribute("aria-labelledby", `name-${one.key}`);
      const buttons = SIDES.map((side, place) => {
        const button = element("button", { type: "button" }, LABELS[side], " ", element("kbd", { textContent: place + 1 }));
        button.dataset.side = side;
        button.addEventListener("click", (event) => {
          if (event.detail) button.blur(); // after a mouse click, Enter saves the verdict
          choose(number, side);
        });
        return button;
      });
      const input = element("input", { id: `reason-${one.key}`, maxLength: 2000, placeholder: "optional" });
      input.addEventListener("input", () => {
        reasons[one.key] = input.value;
        keepDraft();
      });
      input.addEventListener("focus", () => setNow(number));
      row.append(
        element("span", { className: "name", id: `name-${one.key}`, textContent: one.name }),
        element("span", { className: "question", textContent: one.question }),
        element("div", { className: "choices" }, ...buttons),
        element("label", { className: "reason" }, "Why? ", element("kbd", { textContent: "r" }), input),
      );
      return row;
    }),
  );
}

function draw() {
  state.criteria.forEach((one, number) => {
    const row = $(`criterion-${one.key}`);
    row.classList.toggle("now", number === now);
    row.querySelector(".reason").classList.toggle("filled", Boolean(reasons[one.key]));
    const input = $(`reason-${one.key}`);
    if (input.value !== (reasons[one.key] || "")) input.value = reasons[one.key] || "";
    for (const button of row.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(choices[one.key] === button.dataset.side));
    }
  });
  $("keep").disabled = busy;
}

function setNow(number) {
  now = Math.min(Math.max(number, 0), state.criteria.length - 1);
  draw();
  $(`criterion-${state.criteria[now].key}`).scrollIntoView({ block: "nearest" });
}

function choose(number, side) {
  if (busy) return;
  choices[state.criteria[number].key] = side;
  keepDraft();
  const open = state.criteria.findIndex((one, place) => place > number && !choices[one.key]);
  setNow(open < 0 ? number : open);
  say(complete() ? "Press Enter to save this verdict." : "");
}

const complete = () => state.criteria.every((one) => choices[one.key]);

async function keep() {
  if (busy || !page) return;
  if (!complete()) {
    setNow(state.criteria.findIndex((one) => !choices[one.key]));
    return say(`${state.criteria[now].name} has no answer yet.`, true);
  }
  busy = true;
  draw();
  try {
    const seconds = (performance.now() - shownAt) / 1000;
    const answer = await ask("/api/verdict", { page: page.page, choices, reasons, seconds });
    sessionStorage.removeItem(draftName());
    const following = Math.min(page.page + 1, answer.next);
    state.next = answer.next;
    document.activeElement?.blur();
    await open(following);
  } catch (error) {
    say(error.message, true);
  } finally {
    busy = false;
    draw();
  }
}

function back() {
  const number = page ? page.page : state.pages;
  if (!busy && number > 0) open(number - 1);
}

function say(text, bad = false) {
  $("status").textContent = text;
  $("status").classList.toggle("bad", bad);
}

// Unsaved choices survive a reload.
const draftName = () => `precis-draft-${state.judge}-${page.page}`;
const keepDraft = () => sessionStorage.setItem(draftName(), JSON.stringify({ document: page.document.slice(0, 200), choices, reasons }));
function readDraft() {
  try {
    const draft = JSON.parse(sessionStorage.getItem(draftName()));
    return draft && draft.document === page.document.slice(0, 200) ? draft : {};
  } catch {
    return {};
  }
}

// Passages: offsets count characters as Python does, so texts are sliced as lists of code points.
async function step(by) {
  if (!page) return;
  if (!passages) {
    try {
      const found = await ask(`/api/passages/${page.page}`);
      passages = ["left", "right"].flatMap((side) => found[side].map((one) => ({ side, ...one })));
    } catch (error) {
      return say(error.message, true);
    }
  }
  const count = passages.length;
  picked = count ? (picked < 0 && by < 0 ? count - 1 : (picked + by + count) % count) : -1;
  light();
}

function light(place = picked) {
  picked = place;
  const on = passages !== null && picked >= 0;
  const one = on ? passages[picked] : null;
  for (const side of ["left", "right"]) {
    const spans = on ? passages.flatMap((each, n) => (each.side === side ? [{ span: each.sentence, n }] : [])) : [];
    show($(side), page[side], spans, (n) => n === picked);
    $(side).classList.toggle("pick", on);
  }
  const sources = one ? [...one.sources].sort((a, b) => a[0] - b[0]).map((span) => ({ span, n: -1 })) : [];
  show($("source"), page.document, sources, () => true);
  $("passages").setAttribute("aria-pressed", String(on));
  $("passages").firstChild.textContent = on ? "Next passage " : "Show passages ";
  if (!one) return;
  document.querySelector(`#${one.side} mark.on`)?.scrollIntoView({ block: "nearest" });
  const first = document.querySelector("#source mark.on");
  if (first) $("source").scrollTop = first.offsetTop - $("source").offsetTop - 40;
  const said = one.sources.length ? "" : " No passage of the source shares enough words.";
  say(`Sentence ${picked + 1} of ${passages.length}, ${one.side === "left" ? "summary A" : "summary B"}.${said}`);
}

function show(box, text, spans, isOn) {
  const letters = Array.from(text);
  const parts = [];
  let at = 0;
  for (const { span, n } of spans) {
    parts.push(letters.slice(at, span[0]).join(""));
    const mark = element("mark", { textContent: letters.slice(...span).join(""), className: isOn(n) ? "on" : "" });
    if (n >= 0) mark.addEventListener("click", () => light(n));
    parts.push(mark);
    at = span[1];
  }
  parts.push(letters.slice(at).join(""));
  box.replaceChildren(...parts);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !state || $("help").open) return;
  const { key, target } = event;
  if (target.tagName === "INPUT") {
    if (key === "Enter" || key === "Escape") {
      event.preventDefault();
      target.blur();
    }
    return;
  }
  if (key === "Enter" && target.tagName === "BUTTON") return; // it presses the button
  const does = {
    1: () => page && choose(now, "left"),
    2: () => page && choose(now, "same"),
    3: () => page && choose(now, "right"),
    j: () => page && setNow(now + 1),
    k: () => page && setNow(now - 1),
    r: () => page && $(`reason-${state.criteria[now].key}`).focus(),
    s: () => page && $("source").focus(),
    b: back,
    p: () => step(1),
    P: () => step(-1),
    Escape: () => page && (light(-1), say("")),
    Enter: keep,
    "?": () => $("help").showModal(),
  }[key];
  if (does) {
    event.preventDefault();
    does();
  }
}

document.addEventListener("keydown", onKey);
$("questions").addEventListener("submit", (event) => {
  event.preventDefault();
  keep();
});
$("back").addEventListener("click", back);
$("message-back").addEventListener("click", back);
$("passages").addEventListener("click", () => step(1));
$("help-open").addEventListener("click", () => $("help").showModal());
addEventListener("hashchange", () => location.reload());
begin();
