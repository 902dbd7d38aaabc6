// Files for the next message: by button, drag, paste and camera; and voice.
import { say, toast, request } from "./shell.js";

const at = (id) => document.getElementById(id);

/** upload stores a file for a message to come, and returns its blob and name. */
async function upload(file, kind = "") {
  if (file.size > Number(say("maxbytes"))) throw new Error(say("toolarge"));
  const query = new URLSearchParams({ name: file.name, kind });
  return request("POST", "/files?" + query, file, { headers: { "Content-Type": file.type || "application/octet-stream" } });
}

/** attachments keeps the files of the composer; changed is called when they change. */
export function attachments(changed) {
  const list = at("attached"), most = Number(at("chat").dataset.maxFiles);
  let all = []; // {stored, item}; stored is missing while it is uploaded

  function drop(one) {
    all = all.filter((other) => other !== one);
    one.item.remove();
    changed();
  }

  async function add(file) {
    if (all.length >= most) {
      toast(say("toomany"), "bad");
      return;
    }
    const one = { item: document.createElement("li") };
    if (file.type.startsWith("image/") && file.type !== "image/svg+xml") {
      const image = document.createElement("img");
      image.alt = "";
      image.src = URL.createObjectURL(file);
      image.onload = image.onerror = () => URL.revokeObjectURL(image.src);
      one.item.append(image);
    }
    const label = document.createElement("span"), remove = document.createElement("button");
    label.textContent = `${file.name} ${say("uploading")}`;
    remove.type = "button";
    remove.textContent = "×";
    remove.setAttribute("aria-label", say("remove", file.name));
    remove.addEventListener("click", () => drop(one));
    one.item.append(label, remove);
    list.append(one.item);
    all.push(one);
    changed();
    try {
      one.stored = await upload(file);
      label.textContent = one.stored.name;
    } catch (e) {
      toast(say("failed", e.message), "bad");
      drop(one);
    }
    changed();
  }

  const addAll = (files) => [...files].forEach(add);
  for (const id of ["file", "camera"]) {
    at(id).addEventListener("change", (e) => { addAll(e.target.files); e.target.value = ""; });
  }
  for (const id of ["attach", "photo"]) {
    at(id).addEventListener("keydown", (e) => {
      if (e.key === "Enter" || e.key === " ") { e.preventDefault(); at(id).control.click(); }
    });
  }
  document.addEventListener("paste", (e) => {
    if (e.clipboardData?.files.length) { e.preventDefault(); addAll(e.clipboardData.files); }
  });
  const hasFiles = (e) => e.dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", (e) => {
    if (!hasFiles(e)) return;
    e.preventDefault();
    document.body.classList.add("dropping");
  });
  document.addEventListener("dragleave", (e) => { if (!e.relatedTarget) document.body.classList.remove("dropping"); });
  document.addEventListener("drop", (e) => {
    if (!hasFiles(e)) return;
    e.preventDefault();
    document.body.classList.remove("dropping");
    addAll(e.dataTransfer.files);
  });

  return {
    busy: () => all.some((one) => !one.stored),
    count: () => all.length,
    take() {
      const taken = all.map((one) => one.stored);
      all = [];
      list.replaceChildren();
      return taken;
    },
  };
}

/** voice records a message with the microphone, where the browser has one; said gets its file. */
export function voice(said) {
  const button = at("voice"), discard = at("discard-voice"), clock = at("clock");
  let recorder, keep, timer;
  button.hidden = !navigator.mediaDevices?.getUserMedia || !window.MediaRecorder; // only over HTTPS, or on this machine

  async function start() {
    const microphone = await navigator.mediaDevices.getUserMedia({ audio: true });
    const parts = [], began = Date.now();
    recorder = new MediaRecorder(microphone);
    keep = true;
    recorder.ondataavailable = (e) => parts.push(e.data);
    recorder.onstop = async () => {
      clearInterval(timer);
      clock.textContent = "";
      microphone.getTracks().forEach((track) => track.stop());
      button.setAttribute("aria-pressed", "false");
      discard.hidden = true;
      const type = recorder.mimeType.split(";")[0];
      recorder = null;
      if (!keep) return;
      try {
        const name = "voice." + (type.split("/")[1] || "webm");
        said(await upload(new File(parts, name, { type }), "voice"));
      } catch (e) {
        toast(say("failed", e.message), "bad");
      }
    };
    recorder.start();
    button.setAttribute("aria-pressed", "true");
    discard.hidden = false;
    const tick = () => {
      const s = Math.floor((Date.now() - began) / 1000);
      clock.textContent = say("recording", `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`);
    };
    timer = setInterval(tick, 1000);
    tick();
  }

  button.addEventListener("click", () => {
    if (recorder) recorder.stop();
    else start().catch((e) => toast(say("nomic", e.message), "bad"));
  });
  discard.addEventListener("click", () => { keep = false; recorder?.stop(); });
}
