// The chat: what arrives is shown once and in order, and what is sent is repeated until it is
// accepted.
import { say, toast, post, request, stream, times, Problem } from "./shell.js";
import { attachments, voice } from "./attach.js";

const at = (id) => document.getElementById(id);
const chat = at("chat"), log = at("log"), scroll = at("scroll"), text = at("text"), list = at("list");
const name = chat.dataset.name;
let last = Number(chat.dataset.last); // the newest line that the stream has brought
const title = document.title;

/* Lines */

const line = (seq) => at("l" + seq);
const nearEnd = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 120;
const toEnd = () => { scroll.scrollTop = scroll.scrollHeight; };

function elementOf(html) {
  const t = document.createElement("template");
  t.innerHTML = html; // made and sanitized by the server
  return t.content.firstElementChild;
}

/** finish completes what the server can't: times, copy buttons, quotes, pressed actions. */
function finish(root) {
  times(root);
  for (const pre of root.querySelectorAll(".text pre")) {
    if (pre.parentElement.classList.contains("code")) continue;
    const box = document.createElement("div");
    box.className = "code";
    pre.replaceWith(box);
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = say("copy");
    box.append(pre, button);
  }
  for (const quoted of root.querySelectorAll(".quoted")) {
    const to = log.querySelector(`[data-id="${CSS.escape(quoted.dataset.to)}"] .text`);
    if (to) {
      quoted.textContent = to.textContent.trim().slice(0, 200);
      quoted.hidden = false;
    }
  }
  const mine = root.matches?.(".line.mine") ? [root] : root.querySelectorAll(".line.mine");
  for (const l of mine) {
    const command = l.querySelector(".text").textContent;
    if (command.startsWith("/")) press(command, Number(l.dataset.seq));
  }
}

/** press takes away the buttons of a message before a line that says one of its commands. */
function press(command, seq) {
  for (const b of log.querySelectorAll(`[data-command="${CSS.escape(command)}"]`)) {
    if (Number(b.closest(".line").dataset.seq) < seq) b.closest(".actions").remove();
  }
}

/** add shows a line at its place, once. */
function add(l) {
  at("pending").querySelector(`[data-id="${CSS.escape(l.id)}"]`)?.remove();
  if (l.draft) draftOf(l.draft)?.remove();
  if (line(l.seq)) return false;
  const stay = !nearEnd();
  const e = elementOf(l.html);
  let before = log.lastElementChild;
  while (before && Number(before.dataset.seq) > l.seq) before = before.previousElementSibling;
  if (before) before.after(e);
  else log.prepend(e);
  at("empty").hidden = true;
  finish(e);
  if (!stay || l.mine) toEnd();
  return true;
}

log.addEventListener("load", () => { if (nearEnd()) toEnd(); }, true); // pictures

async function earlier() {
  const button = at("earlier"), first = log.firstElementChild;
  if (button.disabled || button.hidden || !first) return;
  button.disabled = true;
  try {
    const { lines } = await request("GET", `/chat/lines?c=${encodeURIComponent(name)}&before=${first.dataset.seq}`);
    const height = scroll.scrollHeight;
    for (const l of [...lines].reverse()) {
      if (!line(l.seq)) log.prepend(elementOf(l.html));
    }
    finish(log);
    scroll.scrollTop += scroll.scrollHeight - height;
    button.hidden = !lines.length || lines[0].seq <= 1;
  } catch (e) {
    toast(say("loadfailed", e.message), "bad");
  }
  button.disabled = false;
}
at("earlier").addEventListener("click", earlier);

/* Drafts */

const draftOf = (id) => at("drafts").querySelector(`[data-draft="${CSS.escape(id)}"]`);

function draft(d) {
  const end = nearEnd();
  let e = draftOf(d.id);
  if (d.done) {
    e?.remove();
    return;
  }
  if (!e) {
    e = document.createElement("article");
    e.className = "line draft";
    e.dataset.draft = d.id;
    e.setAttribute("aria-busy", "true");
    const body = document.createElement("div");
    body.className = "text";
    body.dir = "auto";
    e.append(body);
    at("drafts").append(e);
  }
  e.querySelector(".text").innerHTML = d.html; // sanitized by the server
  if (end) toEnd();
}

/* What the server tells */

let readTimer;
function noteRead() {
  if (document.hidden || !last) return;
  clearTimeout(readTimer);
  readTimer = setTimeout(() => post("/chat/read", { conversation: name, seq: last }).catch(() => {}), 300);
}

let missed = 0;
function arrived(from, body, tag) {
  if (!document.hidden) return;
  missed++;
  document.title = `(${missed}) ${title}`;
  if (window.Notification?.permission === "granted") {
    const n = new Notification(say("new", from), { body, tag: "switchboard " + tag });
    n.onclick = () => { window.focus(); n.close(); };
  }
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  missed = 0;
  document.title = title;
  noteRead();
});

stream(() => {
  const all = chat.dataset.all === "true" ? "&all" : "";
  return `/live/chat?c=${encodeURIComponent(name)}&after=${last}${all}`;
}, {
  line(l) {
    last = Math.max(last, l.seq);
    if (add(l) && !l.mine) arrived(at("title").textContent, l.text, name);
    noteRead();
  },
  draft,
  conversation(c) {
    const item = list.querySelector(`li[data-name="${CSS.escape(c.name)}"]`);
    const before = Number(item?.querySelector(".unread")?.firstChild.textContent ?? 0);
    item?.remove();
    if (c.deleted) {
      if (c.name === name) log.replaceChildren();
      return;
    }
    list.prepend(elementOf(c.html));
    if (c.name === name) at("title").textContent = c.label;
    else if (c.unread > before) arrived(c.label, "", c.name);
  },
}, (connected) => {
  at("state").hidden = connected;
  at("state").textContent = connected ? "" : say("offline");
  if (connected) {
    at("drafts").replaceChildren(); // the server sends those that there are
    flush();
  }
});

/* Sending: what is not accepted yet stays in the tab's storage, over reloads too. */

const outboxKey = "outbox", draftKey = "text " + name;
const load = (key) => { try { return JSON.parse(sessionStorage.getItem(key)); } catch { return null; } };
const store = (key, value) => { try { sessionStorage.setItem(key, JSON.stringify(value)); } catch { /* it is full */ } };
let outbox = load(outboxKey) ?? [];
const keep = () => store(outboxKey, outbox);

function showPending(m) {
  if (m.conversation !== name) return;
  let e = at("pending").querySelector(`[data-id="${CSS.escape(m.id)}"]`);
  if (!e) {
    e = document.createElement("article");
    e.className = "line mine pending";
    e.dataset.id = m.id;
    e.append(document.createElement("div"), document.createElement("footer"));
    e.firstChild.className = "text";
    e.firstChild.dir = "auto";
    at("pending").append(e);
    at("empty").hidden = true;
  }
  e.firstChild.textContent = [m.text, ...m.names].filter(Boolean).join("\n");
  e.classList.toggle("failed", Boolean(m.error));
  const foot = e.lastChild;
  foot.replaceChildren(m.error ? say("unsent", m.error) : say("sending"));
  if (m.error) {
    for (const [label, run] of [["retry", () => { delete m.error; keep(); showPending(m); flush(); }],
      ["discard", () => { outbox = outbox.filter((o) => o !== m); keep(); e.remove(); }]]) {
      const b = document.createElement("button");
      b.type = "button";
      b.className = "link";
      b.textContent = say(label);
      b.addEventListener("click", run);
      foot.append(" ", b);
    }
  }
}

function send(value, files = [], replyTo = "") {
  const m = {
    id: newID(), conversation: name, text: value, reply_to: replyTo,
    files: files.map((f) => f.blob), names: files.map((f) => f.name),
  };
  outbox.push(m);
  keep();
  showPending(m);
  toEnd();
  flush();
}

const newID = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");

let flushing = false, retryTimer, pause = 500;
async function flush() {
  clearTimeout(retryTimer);
  if (flushing) return;
  flushing = true;
  for (let m; (m = outbox.find((o) => !o.error));) {
    try {
      const l = await post("/chat/say", {
        id: m.id, conversation: m.conversation, text: m.text, reply_to: m.reply_to, files: m.files,
      });
      pause = 500;
      outbox = outbox.filter((o) => o !== m);
      keep();
      if (m.conversation === name) add(l);
    } catch (e) {
      if (e instanceof Problem && e.status >= 400 && e.status < 500 && e.status !== 408 && e.status !== 429) {
        m.error = e.message;
        keep();
        showPending(m);
        continue;
      }
      retryTimer = setTimeout(flush, pause); // not known to be accepted: the same id again
      pause = Math.min(pause * 2, 10000);
      break;
    }
  }
  flushing = false;
}

/* The composer */

const files = attachments(() => { at("send").disabled = files.busy(); });
let replyTo = "";

function quote(l) {
  replyTo = l?.dataset.id ?? "";
  at("quote").hidden = !l;
  at("quote").firstElementChild.textContent = l?.querySelector(".text").textContent.trim().slice(0, 200) ?? "";
  if (l) text.focus();
}
at("unquote").addEventListener("click", () => { quote(null); text.focus(); });

function grow() {
  text.style.height = "auto";
  text.style.height = text.scrollHeight + 2 + "px";
}

function submit() {
  const value = text.value.trim();
  if (files.busy() || !value && !files.count()) return;
  send(value, files.take(), replyTo);
  text.value = "";
  store(draftKey, "");
  quote(null);
  grow();
}

at("composer").addEventListener("submit", (e) => { e.preventDefault(); submit(); text.focus(); });
text.addEventListener("input", () => { store(draftKey, text.value); grow(); });
text.addEventListener("keydown", (e) => {
  if (e.key === "Enter" && !e.shiftKey && !e.isComposing && !matchMedia("(pointer: coarse)").matches) {
    e.preventDefault();
    submit();
  } else if (e.key === "Escape" && replyTo) {
    quote(null);
  }
});

log.addEventListener("click", async (e) => {
  const b = e.target.closest("button");
  if (!b) return;
  if (b.classList.contains("copy")) {
    try {
      await navigator.clipboard.writeText(b.previousElementSibling.textContent);
      toast(say("copied"), "ok");
    } catch (failed) {
      toast(failed.message, "bad");
    }
  } else if (b.classList.contains("reply")) {
    quote(b.closest(".line"));
  } else if (b.dataset.command) {
    const { command } = b.dataset;
    for (const other of b.parentElement.children) other.disabled = true;
    send(command);
    toast(say("pressed", b.textContent));
  }
});

/* Conversations */

at("show-list").addEventListener("click", (e) => {
  const open = document.body.classList.toggle("list-open");
  e.currentTarget.setAttribute("aria-expanded", open);
  if (open) list.querySelector("a")?.focus();
});
addEventListener("keydown", (e) => {
  if (e.key === "Escape" && document.body.classList.contains("list-open")) at("show-list").click();
});
at("delete").addEventListener("click", async () => {
  if (!confirm(say("delete"))) return;
  try {
    await post("/chat/delete", { conversation: name });
    location.href = "/";
  } catch (e) {
    toast(say("failed", e.message), "bad");
  }
});

/* Notifications are asked for once the person wants them. */

const notify = at("notify");
notify.hidden = !("Notification" in window) || Notification.permission !== "default";
notify.addEventListener("click", async () => {
  const answer = await Notification.requestPermission();
  notify.hidden = answer !== "default";
  toast(answer === "granted" ? say("notified") : say("notdenied"));
});

voice((file) => send("", [file]));
text.value = load(draftKey) ?? "";
finish(log);
for (const m of outbox) showPending(m);
grow();
const found = location.hash && document.querySelector(location.hash.replace(/[^#a-z0-9]/g, ""));
if (found) {
  found.classList.add("found");
  found.scrollIntoView({ block: "center" });
} else {
  toEnd();
}
new IntersectionObserver((seen) => { if (seen[0].isIntersecting && scroll.scrollTop < 50 && log.childElementCount) earlier(); },
  { root: scroll }).observe(at("earlier"));
if (!matchMedia("(pointer: coarse)").matches) text.focus();
noteRead();
