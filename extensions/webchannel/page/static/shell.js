// What all pages use: texts, requests, streams, times and short messages.

const texts = JSON.parse(document.getElementById("texts").textContent);

/** say returns a text in the person's language, with values for its %s. */
export function say(key, ...values) {
  return (texts[key] ?? key).replace(/%s/g, () => values.shift() ?? "");
}

/** toast shows a short message, which a screen reader reads. */
export function toast(text, kind = "") {
  const box = document.createElement("p");
  box.className = "toast " + kind;
  box.textContent = text;
  document.getElementById("toasts").append(box);
  setTimeout(() => box.remove(), 6000);
}

/** Problem is the error of a request; status 0: there was no answer. */
export class Problem extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** request sends a request and returns the JSON of the answer. It throws a Problem. */
export async function request(method, path, body, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { method, body, cache: "no-store", ...options });
  } catch {
    throw new Problem(0, say("offline"));
  }
  const json = (answer.headers.get("Content-Type") ?? "").includes("json");
  if (!answer.ok) {
    const detail = json ? (await answer.json()).detail : answer.statusText;
    throw new Problem(answer.status, answer.status === 401 ? say("unauthorized") : detail);
  }
  return json ? answer.json() : null;
}

/** post sends a value as JSON. */
export function post(path, value, method = "POST") {
  return request(method, path, JSON.stringify(value), { headers: { "Content-Type": "application/json" } });
}

const firstPause = 500, longestPause = 15000, silence = 45000, unnoticed = 1500;

/**
 * stream follows events of the server over breaks: address() is asked before each
 * connection, handlers are called by the type of an event with its data and id, and
 * state(connected) tells changes. It returns a function that ends it.
 */
export function stream(address, handlers, state = () => {}) {
  let source, retry, alarm, watchdog, pause = 0, ended = false;
  function again() {
    source?.close();
    clearTimeout(watchdog);
    alarm ??= setTimeout(() => state(false), unnoticed);
    clearTimeout(retry);
    retry = setTimeout(connect, pause * (0.75 + Math.random() / 2));
    pause = Math.min(Math.max(firstPause, 2 * pause), longestPause);
  }
  function alive() {
    clearTimeout(watchdog);
    watchdog = setTimeout(again, silence);
  }
  function connect() {
    clearTimeout(retry);
    if (ended) return;
    source?.close();
    source = new EventSource(address());
    source.onopen = () => {
      clearTimeout(alarm);
      alarm = undefined;
      alive();
      state(true);
    };
    source.onerror = again; // the browser itself would give up after an error of HTTP
    source.addEventListener("beat", () => { pause = 0; alive(); });
    source.addEventListener("bye", again);
    for (const [type, handle] of Object.entries(handlers)) {
      source.addEventListener(type, (e) => { alive(); handle(JSON.parse(e.data), e.lastEventId); });
    }
  }
  function now() {
    if (source?.readyState !== EventSource.CLOSED) return;
    pause = 0;
    connect();
  }
  addEventListener("online", now);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) now(); });
  addEventListener("pagehide", () => { source?.close(); clearTimeout(watchdog); clearTimeout(retry); });
  addEventListener("pageshow", (e) => { if (e.persisted) connect(); });
  connect();
  return () => { ended = true; clearTimeout(retry); clearTimeout(alarm); clearTimeout(watchdog); source?.close(); };
}

const language = document.documentElement.lang;
const styles = {
  time: { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }, // as on the board
  date: { dateStyle: "medium" },
  both: { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" },
};
const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

function ago(at) {
  const seconds = (at - Date.now()) / 1000;
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? units[3];
  return new Intl.RelativeTimeFormat(language, { numeric: "auto" }).format(Math.round(seconds / size), unit);
}

/** times shows the times below an element in the browser's time zone. */
export function times(root = document) {
  for (const t of root.querySelectorAll("time[data-format]")) {
    const at = new Date(t.dateTime);
    let format = t.dataset.format;
    if (format === "when") format = at.toDateString() === new Date().toDateString() ? "time" : "both";
    t.textContent = format === "ago" ? ago(at) : new Intl.DateTimeFormat(language, styles[format] ?? styles.both).format(at);
    t.title = new Intl.DateTimeFormat(language, { dateStyle: "full", timeStyle: "medium" }).format(at);
  }
}

times();

const menu = document.getElementById("menu");
function toggle(open) {
  menu.setAttribute("aria-expanded", open);
  document.body.classList.toggle("menu-open", open);
}
menu.addEventListener("click", () => toggle(menu.getAttribute("aria-expanded") !== "true"));
addEventListener("keydown", (e) => {
  if (e.key === "Escape") document.querySelectorAll("details.more[open]").forEach((d) => { d.open = false; });
  if (e.key === "Escape" && menu.getAttribute("aria-expanded") === "true") {
    toggle(false);
    menu.focus();
  }
});
document.getElementById("main").addEventListener("click", () => toggle(false));

document.addEventListener("click", (e) => {
  for (const d of document.querySelectorAll("details.more[open]")) {
    if (!d.contains(e.target) || e.target.closest("button, a")) d.open = false;
  }
});

addEventListener("submit", (e) => {
  const question = e.submitter?.dataset.confirm ?? e.target.dataset.confirm;
  if (question && !confirm(question)) e.preventDefault();
});
